// The reduction of a bucket without a hook: one all-reduce, in place.
//
//   PlainReduction reduction(comm::ReduceOp::kSum);
//   comm->RunInline(*reduction.Exchange(/*round=*/0, grads), timeout);
//
// Threads and errors: see BucketReduction.

#ifndef ACTORS_CHUNKS_PLAIN_REDUCTION_H_
#define ACTORS_CHUNKS_PLAIN_REDUCTION_H_

#include <optional>

#include "actors/spec/bucket_reduction.h"
#include "comm/communicator.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class PlainReduction : public BucketReduction {
 public:
  explicit PlainReduction(comm::ReduceOp op) : op_(op) {}

  std::optional<comm::Collective> Exchange(
      int, const nn::Tensor& grads) const override {
    return comm::AllReduce(op_, grads);
  }
  bool in_place() const override { return true; }

 private:
  const comm::ReduceOp op_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_PLAIN_REDUCTION_H_
