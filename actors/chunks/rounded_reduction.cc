#include "actors/chunks/rounded_reduction.h"

#include "base/check.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<BucketReduction>> RoundedReduction::Create(
    const GradientBucket& bucket, nn::DType dtype, comm::ReduceOp op,
    int owners) {
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor rounded, bucket.Allocate(dtype));
  return std::unique_ptr<BucketReduction>(
      new RoundedReduction(bucket, std::move(rounded), op, owners));
}

}  // namespace troupe::actors
