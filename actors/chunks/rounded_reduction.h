// Reduces a bucket in another dtype than its gradients have
// (pipeline::ReductionChoices::reduction_dtype): they are rounded to it, and so
// is each sum of two.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       auto reduction, RoundedReduction::Create(bucket, nn::DType::kBF16,
//                                            comm::ReduceOp::kSum));
//   TROUPE_RETURN_IF_ERROR(reduction->Begin(/*round=*/0, grads));
//   comm->RunInline(*reduction->Exchange(/*round=*/0, grads), timeout);
//   TROUPE_RETURN_IF_ERROR(reduction->End(grads));
//
// Threads: see BucketReduction.

#ifndef ACTORS_CHUNKS_ROUNDED_REDUCTION_H_
#define ACTORS_CHUNKS_ROUNDED_REDUCTION_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/plain_reduction.h"
#include "actors/spec/bucket_reduction.h"
#include "comm/communicator.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class RoundedReduction : public BucketReduction {
 public:
  // `owners`: number of replicas that each reduce and update a slice; 1: each
  // reduces all. `lasts`: whether the rounded gradients have memory all the
  // time, which a device with queues needs; false: from Begin() to End().
  //   kResourceExhausted: there is no memory for the rounded gradients.
  static absl::StatusOr<std::unique_ptr<BucketReduction>> Create(
      const GradientBucket& bucket, nn::DType dtype, comm::ReduceOp op,
      int owners = 1, bool lasts = true);

  absl::Status Begin(int, const nn::Tensor& grads) override {
    if (!rounded_.defined()) {
      TROUPE_ASSIGN_OR_RETURN(rounded_, bucket_.Allocate(dtype_));
    }
    return bucket_.kernels->Copy(grads, rounded_);
  }
  std::optional<comm::Collective> Exchange(int,
                                           const nn::Tensor&) const override {
    return ReduceSlice(op_, rounded_, owner_, owners_);
  }
  absl::Status End(nn::Tensor grads) override {
    TROUPE_RETURN_IF_ERROR(bucket_.kernels->Copy(rounded_, grads));
    if (!lasts_) rounded_ = nn::Tensor();
    return absl::OkStatus();
  }
  void AddRanges(std::vector<nn::Tensor>& ranges) const override {
    if (lasts_) ranges.push_back(rounded_);
  }

 private:
  RoundedReduction(const GradientBucket& bucket, nn::DType dtype,
                   comm::ReduceOp op, int owners, bool lasts)
      : bucket_(bucket),
        dtype_(dtype),
        op_(op),
        owner_(owners == 1 ? 0 : bucket.replica),
        owners_(owners),
        lasts_(lasts) {}

  const GradientBucket bucket_;
  const nn::DType dtype_;
  nn::Tensor rounded_;  // [elems]
  const comm::ReduceOp op_;
  const int owner_, owners_;
  const bool lasts_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_ROUNDED_REDUCTION_H_
