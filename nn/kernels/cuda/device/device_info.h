// Lists the GPUs of this machine, for `trainer devices`, for logs, and for
// tests that skip themselves on a machine without a GPU.
//
//   absl::StatusOr<std::vector<CudaDeviceInfo>> devices = ListCudaDevices();
//   if (!devices.ok()) return devices.status();   // no CUDA, or no driver
//   for (const CudaDeviceInfo& device : *devices) {
//     std::cout << device.ToString() << "\n";
//   }
//
// Threads: any. Cost: the first call opens the driver (about 0.1 s); it creates
// no context and takes no device memory.

#ifndef NN_KERNELS_CUDA_DEVICE_DEVICE_INFO_H_
#define NN_KERNELS_CUDA_DEVICE_DEVICE_INFO_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::nn {

// Versions as the libraries print them: "13.0", "9.19.0".
struct CudaVersions {
  std::string driver;  // newest CUDA version that the driver supports
  std::string runtime;
  std::string cublas_lt;
  std::string cudnn;
  std::string nccl;

  // "driver 13.0, runtime 13.0, cuBLASLt 13.1.0, cuDNN 9.19.0, NCCL 2.28.9"
  std::string ToString() const;
};

struct CudaDeviceInfo {
  int ordinal = 0;   // N in the device name cuda:N
  std::string name;  // "NVIDIA H200"
  std::size_t memory_bytes = 0;
  int compute_major = 0;  // compute capability 9.0: 9 and 0
  int compute_minor = 0;
  int multiprocessors = 0;

  // "cuda:0, NVIDIA H200, 139.8 GiB, compute 9.0, 132 multiprocessors"
  std::string ToString() const;
};

// Returns the devices that CUDA_VISIBLE_DEVICES leaves visible, by ordinal;
// empty if the driver finds none.
//   kUnavailable: built without CUDA, or no driver on this machine.
absl::StatusOr<std::vector<CudaDeviceInfo>> ListCudaDevices();

// Returns the versions of the driver and the libraries.
//   kUnavailable: built without CUDA.
absl::StatusOr<CudaVersions> GetCudaVersions();

}  // namespace troupe::nn

#endif  // NN_KERNELS_CUDA_DEVICE_DEVICE_INFO_H_
