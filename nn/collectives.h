// Collective operations among the ranks along one axis of the mesh, for a layer
// that needs its peers during forward or backward: synchronised normalisation,
// tensor parallelism, sharded parameters.
//
//   Tensor SyncedSum(Context& ctx, Tensor sum) {
//     Collectives* dp = ctx.collectives("dp");
//     if (dp == nullptr) return sum;              // no peers
//     absl::Status status = dp->AllReduce(ReduceOp::kSum, sum);
//     return status.ok() ? sum : ctx.Fail(status);
//   }
//
// AllGather() and ReduceScatter() send half as many bytes each as an
// AllReduce() of the same tensor.
//
// A call blocks the calling strand until its result is available; other strands
// continue meanwhile. An op keeps the pointer in its Node for the backward: the
// object lives as long as the rank.
//
// Order: all ranks along an axis make the same calls in the same order, which
// holds if they run the same layers on the same shapes. A rank whose
// micro-batch has no sample makes the same calls.
//
// Errors: the error that ended the wait, if a peer failed or did not join in
// time. The contents of the range are then unspecified.
// Threads: the rank's compute strand.

#ifndef NN_COLLECTIVES_H_
#define NN_COLLECTIVES_H_

#include <string>

#include "absl/status/status.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

// Operation that a reduction applies to the ranks' elements. kAvg adds, and
// divides once. kMin and kMax give NaN if any rank has one.
enum class ReduceOp { kSum, kAvg, kMin, kMax };

class Collectives {
 public:
  virtual ~Collectives() = default;

  // This rank's coordinate along the axis, and the number of ranks: at least 2.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Reduces `range` over the ranks, in place. Each element is the result of one
  // fixed tree of additions (docs/collectives.md): the same bits on every rank
  // and in every run.
  virtual absl::Status AllReduce(ReduceOp op, const Tensor& range) = 0;

  // Puts the ranks' `input` behind each other in `range`, in the order of
  // ranks: [c] -> [size() c] elements, of one dtype. `input` may be this rank's
  // block of `range`; otherwise both lie apart.
  virtual absl::Status AllGather(const Tensor& input, const Tensor& range) = 0;

  // Reduces `input`, [size() c] elements, over the ranks, and gives each rank
  // its block of the result in `range`, [c]: the bits of an AllReduce(). The
  // two lie apart.
  virtual absl::Status ReduceScatter(ReduceOp op, const Tensor& input,
                                     const Tensor& range) = 0;
};

// One axis of the mesh that has at least two ranks.
struct AxisCollectives {
  std::string axis;  // "dp"
  Collectives* collectives = nullptr;
};

}  // namespace troupe::nn

#endif  // NN_COLLECTIVES_H_
