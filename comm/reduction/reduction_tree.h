// The one order in which Troupe adds up the values of n ranks, so that a sum
// has the same bits on every transport (docs/collectives.md).
//
//   const void* sources[3] = {a, b, c};         // 1000 floats each
//   void* results[3] = {a, b, c};               // in place, all of them
//   Reduction sum{ReduceOp::kSum, nn::DType::kF32, /*ranks=*/3};
//   ReduceTree(sum, sources, results, 1000);    // (a + b) + c
//
// The tree over n elements in rank order splits at the largest power of two
// below n, on both sides again: a0 + a1, (a0 + a1) + a2,
// ((a0 + a1) + (a2 + a3)) + a4. Each node computes in f32 (f64 for f64) and
// rounds to the dtype. For kAvg the root then divides, and rounds again. A
// floating result that is NaN becomes the quiet NaN without payload, because
// the instruction set decides which of two NaNs an addition keeps.
//
// Integers wrap around; an average of them rounds towards zero. u8 has neither
// avg nor product; floating dtypes have no band, bor and bxor.
//
// Cost: one pass over memory for up to 8 sources; beyond, partial results stay
// in 2 KB pieces in the first-level cache. Threads: no state; any.

#ifndef COMM_REDUCTION_REDUCTION_TREE_H_
#define COMM_REDUCTION_REDUCTION_TREE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/cpu_isa.h"
#include "comm/reduction/reduce_op.h"
#include "nn/tensor/dtype.h"

namespace troupe::comm {

struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  nn::DType dtype = nn::DType::kF32;
  // Number of ranks of the group, if this computes the root of its tree. 0 for
  // a subtree whose result another node will use: nothing is divided yet.
  int ranks = 0;
};

// Limit on the sources of one tree.
inline constexpr int kReductionSourcesMax = 256;

// Returns kInvalidArgument if the dtype lacks the op.
absl::Status CheckReduction(ReduceOp op, nn::DType dtype);

// Returns how many of n >= 2 sources are left of the root: 1, 2, 2, 4, 4, 4, 4,
// 8 ...
int TreeSplit(int n);

// Reduces `count` elements of each source, and writes them to each destination.
// A destination may be one of the sources; otherwise nothing overlaps. No
// alignment is required. The reduction must have passed CheckReduction().
void ReduceTree(const Reduction& reduction,
                absl::Span<const void* const> sources,
                absl::Span<void* const> destinations, std::size_t count);

// ReduceTree() by the kernels of `isa`, which this CPU must support. All give
// the same bits.
void ReduceTreeOn(base::CpuIsa isa, const Reduction& reduction,
                  absl::Span<const void* const> sources,
                  absl::Span<void* const> destinations, std::size_t count);

}  // namespace troupe::comm

#endif  // COMM_REDUCTION_REDUCTION_TREE_H_
