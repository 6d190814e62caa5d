// The arithmetic of collectives, in NCCL's types: sums in rank order, rounded
// to the type after each term.
//
//     Reduction sum{ncclBfloat16, ncclSum, {}};
//     sum.Apply({of_rank_0, of_rank_1}, count, result);
//
// Threads: any.

#ifndef BASE_CUDA_EMULATED_NCCL_REDUCTION_H_
#define BASE_CUDA_EMULATED_NCCL_REDUCTION_H_

#include <nccl.h>

#include <cstddef>
#include <vector>

namespace emulated_cuda {

// Returns the size of an element; 0: the emulation lacks the type.
std::size_t BytesOf(ncclDataType_t type);

struct Reduction {
  ncclDataType_t type = ncclFloat32;
  // ncclSum, ncclProd, ncclMax, ncclMin or ncclAvg.
  ncclRedOp_t op = ncclSum;
  // For ncclRedOpCreatePreMulSum(): each rank's factor, as an element of
  // `type`; empty: none.
  std::vector<std::vector<char>> factors;

  // terms[r] and `result` are [count] elements of `type`.
  void Apply(const std::vector<const char*>& terms, std::size_t count,
             char* result) const;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_NCCL_REDUCTION_H_
