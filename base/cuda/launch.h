// Launches a CUDA kernel. Every .cu file includes this header and no other of
// CUDA's, since it is compiled twice: by nvcc for the GPU, and by the host's
// compiler for tests, which run it on base/cuda/emulated.
//
//   __global__ void Scale(int count, float factor, float* x) {
//     const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
//     if (i < count) x[i] *= factor;
//   }
//
//   absl::Status Halve(int count, float* x, cudaStream_t stream) {
//     base::LaunchShape shape;
//     shape.grid = dim3(static_cast<unsigned>(count + 255) / 256);
//     shape.block = dim3(256);
//     return base::Launch("Scale", Scale, shape, stream, count, 0.5f, x);
//   }
//
// base/cuda/emulated/README.md has the rules that keep a kernel compilable for
// both; above all: no <<<>>>, no inline PTX, and DynamicShared<T>() instead of
// `extern __shared__`.
//
// Errors: kInternal, naming the kernel, if the launch failed: the device does
// not support the shape, or an earlier operation left it unusable. Errors
// inside the kernel are reported by a later operation.
//
// Asynchronous: returns when the kernel is queued on `stream`; the arguments
// have been copied by then. Threads: those of the stream, one at a time. Cost:
// that of a launch, about 3 us of CPU time.

#ifndef BASE_CUDA_LAUNCH_H_
#define BASE_CUDA_LAUNCH_H_

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "base/cuda/cuda_status.h"
#else
#include "base/cuda/emulated/device_code.h"
#include "base/cuda/emulated/enqueue.h"
#include "base/cuda/emulated/executor.h"
#endif

#include <cstddef>
#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace troupe::base {

// Name of a kernel in errors and traces, and the source line of its launch;
// converts from a string literal at the call.
struct KernelName {
  // NOLINTNEXTLINE(runtime/explicit)
  KernelName(const char* name, const char* file = __builtin_FILE(),
             int line = __builtin_LINE())
      : name(name), file(file), line(line) {}

  const char* name;
  const char* file;
  int line;
};

struct LaunchShape {
  dim3 grid = dim3(1);           // blocks
  dim3 block = dim3(1);          // threads of a block, at most 1024
  std::size_t shared_bytes = 0;  // size of DynamicShared(), at most 227 KiB
};

#if defined(__CUDACC__)

// Returns the dynamic shared memory of the block as an array of T; it is
// aligned to 16 bytes. Device code only.
template <typename T>
__device__ __forceinline__ T* DynamicShared() {
  extern __shared__ __align__(16) unsigned char troupe_dynamic_shared[];
  return reinterpret_cast<T*>(troupe_dynamic_shared);
}

// Queues `kernel` on `stream`. The arguments convert to the kernel's
// parameters.
template <typename... Parameters, typename... Arguments>
absl::Status Launch(KernelName name, void (*kernel)(Parameters...),
                    const LaunchShape& shape, cudaStream_t stream,
                    Arguments&&... arguments) {
  // Limit up to which no attribute is needed.
  constexpr std::size_t kSharedBytesGranted = 48 << 10;
  if (shape.shared_bytes > kSharedBytesGranted) {
    const cudaError_t granted =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shape.shared_bytes));
    if (granted != cudaSuccess) return CudaStatus(granted, name.name);
  }
  kernel<<<shape.grid, shape.block, shape.shared_bytes, stream>>>(
      std::forward<Arguments>(arguments)...);
  return CudaStatus(cudaGetLastError(), name.name);
}

#else

template <typename T>
T* DynamicShared() {
  return static_cast<T*>(emulated_cuda::DynamicSharedMemory());
}

template <typename... Parameters, typename... Arguments>
absl::Status Launch(KernelName name, void (*kernel)(Parameters...),
                    const LaunchShape& shape, cudaStream_t stream,
                    Arguments&&... arguments) {
  const emulated_cuda::LaunchSite site{name.name, name.file, name.line};
  const emulated_cuda::Grid grid{site, shape.grid, shape.block,
                                 shape.shared_bytes};
  if (std::string wrong = emulated_cuda::WhatIsWrong(grid); !wrong.empty()) {
    return absl::InternalError(
        absl::StrCat(name.name, ": cudaErrorInvalidConfiguration: ", wrong));
  }
  const char* const error = emulated_cuda::EnqueueKernel(
      stream, site,
      [grid, kernel,
       values =
           std::tuple<Parameters...>(std::forward<Arguments>(arguments)...)] {
        emulated_cuda::RunGrid(grid, [&] { std::apply(kernel, values); });
      });
  if (error == nullptr) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(name.name, ": ", error));
}

#endif

}  // namespace troupe::base

#endif  // BASE_CUDA_LAUNCH_H_
