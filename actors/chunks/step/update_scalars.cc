#include "actors/chunks/step/update_scalars.h"

#include <utility>

#include "base/check.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::actors {

absl::StatusOr<UpdateScalars> UpdateScalars::Create(nn::Kernels& kernels,
                                                    nn::Queue queue,
                                                    const nn::Tensor& own) {
  if (queue == nn::Queue::kCompute) {
    return UpdateScalars(kernels, queue, own, own);
  }
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor copy,
      nn::Tensor::Create(own.shape(), own.dtype(), kernels.allocator()));
  return UpdateScalars(kernels, queue, own, copy);
}

void UpdateScalars::BeginStep() {
  passed_ = false;
  nn::Wait(*kernels_, nn::Queue::kCompute, copied_);
}

absl::Status UpdateScalars::Pass() {
  if (passed_ || queue_ == nn::Queue::kCompute) return absl::OkStatus();
  passed_ = true;
  nn::Wait(*kernels_, queue_, reduced_);
  const nn::QueueScope scope(*kernels_, queue_);
  TROUPE_RETURN_IF_ERROR(kernels_->Copy(own_, tensor_));
  copied_ = nn::Record(*kernels_, queue_);
  return absl::OkStatus();
}

absl::StatusOr<comm::Collective> UpdateScalars::SumFindings(bool adds) {
  nn::Tensor found = tensor_.FlatView(nn::kNonFiniteScalar, {2});
  if (!adds) {
    const nn::QueueScope scope(*kernels_, queue_);
    TROUPE_RETURN_IF_ERROR(kernels_->Fill(0, found));
  }
  found_ready_ = nn::Record(*kernels_, queue_);
  return comm::AllReduce(comm::ReduceOp::kSum, std::move(found));
}

void UpdateScalars::NoteFindingsReduced(const base::Event& done) {
  nn::Wait(*kernels_, queue_, done);
}

}  // namespace troupe::actors
