// Owns a handle of cuDNN for one device; it uses one stream at a time.
//
//   TROUPE_ASSIGN_OR_RETURN(CudnnHandle cudnn, CudnnHandle::Open());
//   TROUPE_RETURN_IF_ERROR(cudnn.UseStream(stream));
//   status = Execute(cudnn.get(), plan, uids, pointers, workspace);
//
// Threads: one at a time. Only for files that are built with cuDNN.

#ifndef NN_KERNELS_CUDA_LIBRARIES_CUDNN_HANDLE_H_
#define NN_KERNELS_CUDA_LIBRARIES_CUDNN_HANDLE_H_

#include <cudnn.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/check.h"
#include "nn/kernels/cuda/libraries/cudnn_graph.h"

namespace troupe::nn::cuda {

class CudnnHandle {
 public:
  // Opens cuDNN for the current device of the calling thread.
  //   kUnavailable: no driver, or no device.
  static absl::StatusOr<CudnnHandle> Open() {
    cudnnHandle_t handle = nullptr;
    TROUPE_RETURN_IF_ERROR(CudnnStatus(cudnnCreate(&handle), "cudnnCreate"));
    return CudnnHandle(handle);
  }

  cudnnHandle_t get() const { return handle_.get(); }

  // Makes later calls of Execute() enqueue to `stream`.
  absl::Status UseStream(cudaStream_t stream) {
    if (set_ && stream == stream_) return absl::OkStatus();
    TROUPE_RETURN_IF_ERROR(
        CudnnStatus(cudnnSetStream(handle_.get(), stream), "cudnnSetStream"));
    stream_ = stream;
    set_ = true;
    return absl::OkStatus();
  }

 private:
  struct Destroy {
    void operator()(cudnnContext* handle) const { (void)cudnnDestroy(handle); }
  };

  explicit CudnnHandle(cudnnHandle_t handle) : handle_(handle) {}

  std::unique_ptr<cudnnContext, Destroy> handle_;
  cudaStream_t stream_ = nullptr;
  bool set_ = false;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_CUDNN_HANDLE_H_
