// Whoever links this file opens GPUs by OpenKernels().

#include "nn/kernels/cuda/cuda_kernels.h"
#include "nn/kernels/device_backends.h"

namespace troupe::nn::cuda {
namespace {

absl::StatusOr<std::unique_ptr<Kernels>> Open(Device device) {
  return OpenCudaKernels(device.index);
}

[[maybe_unused]] const bool kRegistered = [] {
  SetDeviceBackend(DeviceType::kCuda, {CountGpus, Open});
  return true;
}();

}  // namespace
}  // namespace troupe::nn::cuda
