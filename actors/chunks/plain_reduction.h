// The reduction of a bucket without a hook: one collective, in place. That is
// an all-reduce, or, where each replica updates a slice of the bucket, a
// reduce-scatter: then the other slices are not the sums.
//
//   PlainReduction reduction(comm::ReduceOp::kSum);
//   comm->RunInline(*reduction.Exchange(/*round=*/0, grads), timeout);
//
// Threads and errors: see BucketReduction.

#ifndef ACTORS_CHUNKS_PLAIN_REDUCTION_H_
#define ACTORS_CHUNKS_PLAIN_REDUCTION_H_

#include <cstdint>
#include <optional>

#include "actors/spec/bucket_reduction.h"
#include "comm/communicator.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// Returns the collective, in place, after which slice `owner` of `owners` equal
// ones of `grads` is reduced over a group of as many ranks; all of it, if there
// is one owner.
inline comm::Collective ReduceSlice(comm::ReduceOp op, const nn::Tensor& grads,
                                    int owner, int owners) {
  if (owners == 1) return comm::AllReduce(op, grads);
  const std::int64_t elems = grads.numel() / owners;
  return comm::ReduceScatter(op, grads, grads.FlatView(owner * elems, {elems}));
}

class PlainReduction : public BucketReduction {
 public:
  explicit PlainReduction(comm::ReduceOp op) : op_(op) {}
  // Reduces slice `owner` of `owners` equal ones.
  PlainReduction(comm::ReduceOp op, int owner, int owners)
      : op_(op), owner_(owner), owners_(owners) {}

  std::optional<comm::Collective> Exchange(
      int, const nn::Tensor& grads) const override {
    return ReduceSlice(op_, grads, owner_, owners_);
  }
  bool in_place() const override { return true; }

 private:
  const comm::ReduceOp op_;
  const int owner_ = 0, owners_ = 1;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_PLAIN_REDUCTION_H_
