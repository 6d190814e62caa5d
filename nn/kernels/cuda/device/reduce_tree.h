// The reduction of several ranks' memory by one kernel: the tree of additions
// of comm/reduction_tree.h with its roundings, so a sum has the bits that it
// has on the CPU.
//
//   TreeReduction sum{ReduceOp::kSum, {a, b, c}, {a, b, c}};   // in place
//   TROUPE_RETURN_IF_ERROR(CheckReduceTree(sum));
//   TROUPE_RETURN_IF_ERROR(ReduceTree(sum, stream));           // (a + b) + c
//
// All ranges are memory that the stream's device reaches: its own, or a peer's.
// Dtypes: f32, f64, bf16, f16. Asynchronous. Cost: one read of each source and
// one write of each destination.

#ifndef NN_KERNELS_CUDA_DEVICE_REDUCE_TREE_H_
#define NN_KERNELS_CUDA_DEVICE_REDUCE_TREE_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "nn/kernels/device_queues.h"

namespace troupe::nn::cuda {

// Sources, and destinations, of one reduction: what a kernel's parameters hold.
inline constexpr int kReduceTreeRanksMax = 64;

//   kUnimplemented:   another dtype, or more ranks.
//   kInvalidArgument: no source, or ranges that differ.
absl::Status CheckReduceTree(const TreeReduction& reduction);

//   kInternal: the launch failed.
absl::Status ReduceTree(const TreeReduction& reduction, cudaStream_t stream);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_REDUCE_TREE_H_
