// Replaces ../device_info.cc in a build without CUDA: every function fails.

#include "nn/kernels/cuda/device/device_info.h"

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe::nn {
namespace {

absl::Status BuiltWithoutCuda() {
  return absl::UnavailableError(
      "built without CUDA; build with --config=cuda to use a GPU");
}

}  // namespace

std::string CudaVersions::ToString() const { return "built without CUDA"; }

std::string CudaDeviceInfo::ToString() const { return "built without CUDA"; }

absl::StatusOr<std::vector<CudaDeviceInfo>> ListCudaDevices() {
  return BuiltWithoutCuda();
}

absl::StatusOr<CudaVersions> GetCudaVersions() { return BuiltWithoutCuda(); }

}  // namespace troupe::nn
