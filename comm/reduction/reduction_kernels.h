// The kernels behind ReduceTree(), written once in vectors of the compiler and
// built once per instruction set (reduction_plain.cc, _avx2.cc, _avx512.cc).
//
//   const KernelTable& table = KernelsPlain();
//   table.tree[int(op)][int(dtype)](sources, n, destinations, m, count, ranks);
//
// A kernel takes 1 to kKernelSourcesMax sources and computes their tree in
// registers, reading each source once. `ranks` is as in Reduction.
//
// An element gets the same bits at every position: the remainder of a range
// that fills no vector runs through the same vector code, in a padded copy.

#ifndef COMM_REDUCTION_REDUCTION_KERNELS_H_
#define COMM_REDUCTION_REDUCTION_KERNELS_H_

#include <cstddef>

namespace troupe::comm::internal {

inline constexpr int kKernelSourcesMax = 8;
inline constexpr int kOps = 8;     // indexed by ReduceOp
inline constexpr int kDTypes = 7;  // indexed by nn::DType

using ReduceKernel = void (*)(const char* const* sources, int n,
                              char* const* destinations, int m,
                              std::size_t count, int ranks);

struct KernelTable {
  // Null if the dtype lacks the op.
  ReduceKernel tree[kOps][kDTypes];
};

const KernelTable& KernelsPlain();
const KernelTable& KernelsAvx2();
const KernelTable& KernelsAvx512();

}  // namespace troupe::comm::internal

#endif  // COMM_REDUCTION_REDUCTION_KERNELS_H_
