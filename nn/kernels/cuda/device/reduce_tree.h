// Reduces the memory of several ranks of one process by one kernel. It uses the
// tree of additions of comm/reduction/reduction_tree.h with its roundings, so a
// sum has the same bits as on the CPU.
//
//   TreeReduction sum{ReduceOp::kSum, {a, b, c}, {a, b, c}};   // in place
//   TROUPE_RETURN_IF_ERROR(CheckReduceTree(sum));
//   TROUPE_RETURN_IF_ERROR(ReduceTree(sum, stream));           // (a + b) + c
//
// All ranges are memory that the stream's device can access: its own, or that
// of a peer.
// Dtypes: f32, f64, bf16, f16. Asynchronous. Cost: one read of each source and
// one write of each destination.

#ifndef NN_KERNELS_CUDA_DEVICE_REDUCE_TREE_H_
#define NN_KERNELS_CUDA_DEVICE_REDUCE_TREE_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "nn/kernels/device_queues.h"

namespace troupe::nn::cuda {

// Limit on the sources, and on the destinations, of one reduction; it comes
// from the size of a kernel's parameters.
inline constexpr int kReduceTreeRanksMax = 64;

// Returns whether ReduceTree() can reduce it.
//   kUnimplemented:   another dtype, or more ranks.
//   kInvalidArgument: no source, or ranges that differ.
absl::Status CheckReduceTree(const TreeReduction& reduction);

// Enqueues a reduction that passes CheckReduceTree().
//   kInternal: the launch failed.
absl::Status ReduceTree(const TreeReduction& reduction, cudaStream_t stream);

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_REDUCE_TREE_H_
