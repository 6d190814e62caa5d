#include "actors/chunks/rounded_reduction.h"

#include "base/check.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<BucketReduction>> RoundedReduction::Create(
    const GradientBucket& bucket, nn::DType dtype, comm::ReduceOp op,
    int owners, bool lasts) {
  std::unique_ptr<RoundedReduction> reduction(
      new RoundedReduction(bucket, dtype, op, owners, lasts));
  if (lasts) {
    TROUPE_ASSIGN_OR_RETURN(reduction->rounded_, bucket.Allocate(dtype));
  }
  return reduction;
}

}  // namespace troupe::actors
