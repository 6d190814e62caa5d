// The kernel set "cuda" of one GPU: kernels of our own (cuda_ops.h), products
// and convolutions by libraries (library_ops.h), on a CudaDevice.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Kernels> kernels,
//                           OpenCudaKernels(/*ordinal=*/0));
//   kernels->Describe();     // "cuda:0, NVIDIA H200, compute 9.0, .."
//
// A call enqueues to kCompute, or to the queue of a QueueScope, and returns.
// Its status is that of the launch; errors that the GPU finds later are in the
// status of events.
//
// Threads: the same as CudaDevice. In one process any number of kernel sets may
// use one GPU, each with its own streams.

#ifndef NN_KERNELS_CUDA_CUDA_KERNELS_H_
#define NN_KERNELS_CUDA_CUDA_KERNELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn/kernels/kernel_options.h"
#include "nn/kernels/kernels.h"

namespace troupe::nn::cuda {

// Returns the number of GPUs that CUDA_VISIBLE_DEVICES leaves visible.
//   kUnavailable: no driver.
absl::StatusOr<int> CountGpus();

// Opens the kernel set of a GPU.
//   kUnavailable: no driver, or no such GPU.
absl::StatusOr<std::unique_ptr<Kernels>> OpenCudaKernels(
    int ordinal, const KernelOptions& options = {});

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_CUDA_KERNELS_H_
