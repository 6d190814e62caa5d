#include "actors/engine/loop/agreed_uses.h"

#include <vector>

#include "base/check.h"
#include "comm/communicator.h"
#include "nn/autograd/parameter.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<AgreedUses>> AgreedUses::Create(
    const Options& options, ChunkParameters& parameters, nn::Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<UseMarks> marks,
                          UseMarks::Create(parameters, kernels));
  return std::unique_ptr<AgreedUses>(
      new AgreedUses(options, parameters, kernels, std::move(marks)));
}

AgreedUses::AgreedUses(const Options& options, ChunkParameters& parameters,
                       nn::Kernels& kernels, std::unique_ptr<UseMarks> marks)
    : options_(options),
      parameters_(parameters),
      kernels_(kernels),
      marks_(std::move(marks)),
      sum_(/*action=*/-1, "marks of used parameters") {}

absl::Status AgreedUses::StartSum(std::int64_t step, Reducer& reducer) {
  due_ = false;
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor marks, marks_->Publish());
  return sum_.Start(comm::AllReduce(comm::ReduceOp::kSum, std::move(marks)),
                    marks_->ready(), step, reducer);
}

void AgreedUses::EndSum(const base::Event& done, Reducer& reducer) {
  sum_.End(reducer);
  marks_->NoteSummed(done);
}

absl::Status AgreedUses::LeaveOut(std::int64_t step,
                                  absl::FunctionRef<absl::Status()> await) {
  const std::vector<nn::Parameter*> here = marks_->UnusedHere();
  if (static_.has_value()) {
    if (!marks_->closed()) {
      TROUPE_RETURN_IF_ERROR(static_->Check(here, step));
    }
    parameters_.updates().LeaveOut(static_->anywhere);
    return absl::OkStatus();
  }
  std::vector<nn::Parameter*> unused = marks_->Unused();
  if (!unused.empty() && options_.ranks > 1) {
    TROUPE_RETURN_IF_ERROR(await());
    TROUPE_RETURN_IF_ERROR(marks_->TakeSum());
    unused = marks_->Unused();
  }
  if (options_.static_graph) static_ = StaticUses{here, unused};
  parameters_.updates().LeaveOut(unused);
  return absl::OkStatus();
}

absl::Status AgreedUses::CountLeftOut(const nn::Tensor& scalars,
                                      nn::Queue updates) {
  if (!parameters_.updates().leaves_out()) return absl::OkStatus();
  if (parameters_.optimizer()->MaySkipSteps()) {
    TROUPE_ASSIGN_OR_RETURN(
        const nn::Tensor non_finite,
        nn::CopyToHost(kernels_, updates,
                       scalars.FlatView(nn::kNonFiniteScalar, {1})));
    TROUPE_RETURN_IF_ERROR(
        nn::Synchronize(kernels_, nn::Record(kernels_, updates)));
    if (non_finite.data<double>()[0] != 0) return absl::OkStatus();
  }
  parameters_.updates().CountLeftOut();
  return absl::OkStatus();
}

}  // namespace troupe::actors
