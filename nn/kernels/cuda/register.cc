// Registers the backend of CUDA devices: a program that links this file can
// open GPUs by OpenKernels().

#include "nn/kernels/cuda/cuda_kernels.h"
#include "nn/kernels/cuda/libraries/gpu_report.h"
#include "nn/kernels/device_backends.h"

namespace troupe::nn::cuda {
namespace {

absl::StatusOr<std::unique_ptr<Kernels>> Open(Device device,
                                              const KernelOptions& options) {
  return OpenCudaKernels(device.index, options);
}

[[maybe_unused]] const bool kRegistered = [] {
  SetDeviceBackend(DeviceType::kCuda, {CountGpus, Open, ReportGpus});
  return true;
}();

}  // namespace
}  // namespace troupe::nn::cuda
