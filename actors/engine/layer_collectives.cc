#include "actors/engine/layer_collectives.h"

#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {
namespace {

comm::ReduceOp OpOf(nn::ReduceOp op) {
  switch (op) {
    case nn::ReduceOp::kSum:
      return comm::ReduceOp::kSum;
    case nn::ReduceOp::kAvg:
      return comm::ReduceOp::kAvg;
    case nn::ReduceOp::kMin:
      return comm::ReduceOp::kMin;
    case nn::ReduceOp::kMax:
      return comm::ReduceOp::kMax;
  }
  TROUPE_CHECK(false, "an op of nn/collectives.h");
  return comm::ReduceOp::kSum;
}

}  // namespace

absl::Status LayerCollectives::AllReduce(nn::ReduceOp op,
                                         const nn::Tensor& range) {
  return Run(comm::AllReduce(OpOf(op), range));
}

absl::Status LayerCollectives::AllGather(const nn::Tensor& input,
                                         const nn::Tensor& range) {
  return Run(comm::AllGather(input, range));
}

absl::Status LayerCollectives::ReduceScatter(nn::ReduceOp op,
                                             const nn::Tensor& input,
                                             const nn::Tensor& range) {
  return Run(comm::ReduceScatter(OpOf(op), input, range));
}

// The compute queue waits for each collective: it has completed all that are
// before one that it has reached.
absl::Status LayerCollectives::AwaitDevice() {
  while (before_.size() >= kAheadMax) {
    if (!before_.front().ready()) {
      wait_->AwaitNews();
      continue;
    }
    TROUPE_RETURN_IF_ERROR(before_.front().status());
    before_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status LayerCollectives::Run(const comm::Collective& collective) {
  const base::Event ready = nn::Record(*kernels_, nn::Queue::kCompute);
  if (on_device_) {
    TROUPE_RETURN_IF_ERROR(AwaitDevice());
    before_.push_back(ready);
    TROUPE_ASSIGN_OR_RETURN(const base::Event done,
                            comm_->Start(collective, ready));
    nn::Wait(*kernels_, nn::Queue::kCompute, done);
    return absl::OkStatus();
  }
  // Threads of the host move the data, so it must be complete.
  while (!ready.ready()) wait_->AwaitNews();
  TROUPE_RETURN_IF_ERROR(ready.status());
  return wait_->RunInline(*comm_, collective);
}

}  // namespace troupe::actors
