// The kernel sets of devices that not every build has: what links such a set
// brings it here, and OpenKernels() asks. So a program that is built without
// CUDA knows nothing of it and says so, and tests link another one in its place
// (nn/kernels/cuda:register, or :register_emulated).
//
//   const bool kRegistered = [] {
//     SetDeviceBackend(DeviceType::kCuda, {&CountGpus, &OpenGpu, &Report});
//     return true;
//   }();
//   if (const DeviceBackend* backend = FindDeviceBackend(device.type)) {
//     kernels = backend->open(device, options);
//   }
//
// Threads: SetDeviceBackend() before main(), the rest in any.

#ifndef NN_KERNELS_DEVICE_BACKENDS_H_
#define NN_KERNELS_DEVICE_BACKENDS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn/kernels/gpu_report.h"
#include "nn/kernels/kernel_options.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/device.h"

namespace troupe::nn {

struct DeviceBackend {
  // How many such devices this process sees.
  //   kUnavailable: no driver.
  absl::StatusOr<int> (*count)() = nullptr;
  absl::StatusOr<std::unique_ptr<Kernels>> (*open)(
      Device device, const KernelOptions& options) = nullptr;
  // What the devices are, and the way to them; null: nobody says.
  GpuReport (*report)() = nullptr;
};

// Once for each type.
void SetDeviceBackend(DeviceType type, const DeviceBackend& backend);
// Null: this build has none.
const DeviceBackend* FindDeviceBackend(DeviceType type);

}  // namespace troupe::nn

#endif  // NN_KERNELS_DEVICE_BACKENDS_H_
