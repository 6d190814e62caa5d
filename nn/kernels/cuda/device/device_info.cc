#include "nn/kernels/cuda/device/device_info.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nccl.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/cuda/cuda_status.h"
#include "nn/kernels/cuda/kernel_parts/dotted_version.h"

namespace troupe::nn {
namespace {

using base::CudaStatus;
using cuda::DottedVersion;

// Returns "13.0" for 13000.
std::string CudaVersion(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace

std::string CudaVersions::ToString() const {
  return absl::StrCat("driver ", driver, ", runtime ", runtime, ", cuBLASLt ",
                      cublas_lt, ", cuDNN ", cudnn, ", NCCL ", nccl);
}

std::string CudaDeviceInfo::ToString() const {
  constexpr double kBytesPerGib = 1 << 30;
  return absl::StrFormat(
      "cuda:%d, %s, %.1f GiB, compute %d.%d, %d multiprocessors", ordinal, name,
      static_cast<double>(memory_bytes) / kBytesPerGib, compute_major,
      compute_minor, multiprocessors);
}

absl::StatusOr<std::vector<CudaDeviceInfo>> ListCudaDevices() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorNoDevice) return std::vector<CudaDeviceInfo>();
  if (absl::Status s = CudaStatus(counted, "cudaGetDeviceCount"); !s.ok()) {
    return s;
  }
  std::vector<CudaDeviceInfo> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties;
    if (absl::Status s =
            CudaStatus(cudaGetDeviceProperties(&properties, ordinal),
                       absl::StrCat("cudaGetDeviceProperties ", ordinal));
        !s.ok()) {
      return s;
    }
    CudaDeviceInfo& device = devices.emplace_back();
    device.ordinal = ordinal;
    device.name = properties.name;
    device.memory_bytes = properties.totalGlobalMem;
    device.compute_major = properties.major;
    device.compute_minor = properties.minor;
    device.multiprocessors = properties.multiProcessorCount;
  }
  return devices;
}

absl::StatusOr<CudaVersions> GetCudaVersions() {
  int driver = 0;  // stays 0 without a driver
  int runtime = 0;
  if (absl::Status s = CudaStatus(cudaDriverGetVersion(&driver), "driver");
      !s.ok()) {
    return s;
  }
  if (absl::Status s = CudaStatus(cudaRuntimeGetVersion(&runtime), "runtime");
      !s.ok()) {
    return s;
  }
  int nccl = 0;
  if (ncclResult_t result = ncclGetVersion(&nccl); result != ncclSuccess) {
    return absl::InternalError(
        absl::StrCat("ncclGetVersion: ", ncclGetErrorString(result)));
  }
  CudaVersions versions;
  versions.driver = driver == 0 ? "none" : CudaVersion(driver);
  versions.runtime = CudaVersion(runtime);
  versions.cublas_lt = DottedVersion(cublasLtGetVersion());
  versions.cudnn = DottedVersion(cudnnGetVersion());
  versions.nccl = DottedVersion(static_cast<std::size_t>(nccl));
  return versions;
}

}  // namespace troupe::nn
