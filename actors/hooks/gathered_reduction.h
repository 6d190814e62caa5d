// Reduces a bucket in two rounds, an all-reduce by halves: a reduce-scatter in
// the dtype of the gradients, after which each replica has the sum of one
// block; then an all-gather of the blocks in 16 bits. Each sum is thus rounded
// once, at the end, where a RoundedReduction rounds every sum of two, and three
// quarters of the bytes of f32 travel instead of a half.
//
//   spec.hook = GatherIn(nn::DType::kBF16);
//   spec.hook.name;  // "gather_bf16"
//
// Gathered in the dtype of the gradients, they have the bits of the all-reduce.
//
// Cost: a copy of the gradients in the dtype of the gather.
// Threads: see BucketReduction. Source: Thakur et al. 2005,
// doi:10.1177/1094342005051521, sec. 4.5 (reduce-scatter and all-gather).

#ifndef ACTORS_HOOKS_GATHERED_REDUCTION_H_
#define ACTORS_HOOKS_GATHERED_REDUCTION_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/spec/bucket_reduction.h"
#include "comm/communicator.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class GatheredReduction : public BucketReduction {
 public:
  static constexpr int kRounds = 2;

  // `gathered`: memory for all elements of the bucket, in the dtype of the
  // gather.
  GatheredReduction(const GradientBucket& bucket, nn::Tensor gathered)
      : kernels_(bucket.kernels),
        gathered_(std::move(gathered)),
        block_(bucket.elems / bucket.replicas),
        begin_(block_ * bucket.replica) {}

  absl::Status Begin(int round, const nn::Tensor& grads) override;
  std::optional<comm::Collective> Exchange(
      int round, const nn::Tensor& grads) const override;
  absl::Status End(nn::Tensor grads) override;
  bool uses_grads() const override { return true; }
  void AddRanges(std::vector<nn::Tensor>& ranges) const override {
    ranges.push_back(gathered_);
  }

 private:
  // Returns this replica's block of `all`, which has the bucket's elements.
  nn::Tensor BlockOf(const nn::Tensor& all) const {
    return all.FlatView(begin_, {block_});
  }

  nn::Kernels* const kernels_;
  nn::Tensor gathered_;
  const std::int64_t block_, begin_;  // elements
};

// Returns the hook that makes them; `dtype` is a floating type.
CommunicationHook GatherIn(nn::DType dtype);

}  // namespace troupe::actors

#endif  // ACTORS_HOOKS_GATHERED_REDUCTION_H_
