// Converts an error of the CUDA runtime to an absl::Status. Only for files that
// are built with CUDA.
//
//   absl::Status s = CudaStatus(cudaMalloc(&p, bytes), "cudaMalloc");

#ifndef BASE_CUDA_CUDA_STATUS_H_
#define BASE_CUDA_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace troupe::base {

// Returns "what: cudaErrorMemoryAllocation: out of memory".
//   kResourceExhausted: device memory is exhausted; the context stays usable.
//   kUnavailable:       no driver, or no device.
//   kInternal:          any other error. Most are sticky: the process cannot
//                       use the device any more and must end (docs/cuda.md).
inline absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string message = absl::StrCat(what, ": ", cudaGetErrorName(error),
                                           ": ", cudaGetErrorString(error));
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(message);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace troupe::base

#endif  // BASE_CUDA_CUDA_STATUS_H_
