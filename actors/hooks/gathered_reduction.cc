#include "actors/hooks/gathered_reduction.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {

absl::Status GatheredReduction::Begin(int round, const nn::Tensor& grads) {
  if (round == 0) return absl::OkStatus();
  nn::Tensor block = BlockOf(gathered_);
  return kernels_->Copy(BlockOf(grads), block);
}

std::optional<comm::Collective> GatheredReduction::Exchange(
    int round, const nn::Tensor& grads) const {
  return round == 0
             ? comm::ReduceScatter(comm::ReduceOp::kSum, grads, BlockOf(grads))
             : comm::AllGather(BlockOf(gathered_), gathered_);
}

absl::Status GatheredReduction::End(nn::Tensor grads) {
  return kernels_->Copy(gathered_, grads);
}

CommunicationHook GatherIn(nn::DType dtype) {
  CommunicationHook hook;
  hook.name = absl::StrCat("gather_", nn::DTypeName(dtype));
  hook.rounds = GatheredReduction::kRounds;
  hook.make = [dtype](const GradientBucket& bucket)
      -> absl::StatusOr<std::unique_ptr<BucketReduction>> {
    TROUPE_ASSIGN_OR_RETURN(nn::Tensor gathered, bucket.Allocate(dtype));
    return std::make_unique<GatheredReduction>(bucket, std::move(gathered));
  };
  return hook;
}

}  // namespace troupe::actors
