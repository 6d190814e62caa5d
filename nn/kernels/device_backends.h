// Registry of the kernel sets that not every build has: linking such a set
// registers it, and OpenKernels() looks it up. So a program built without CUDA
// does not depend on it and reports that it lacks it, and tests link another
// set in its place (nn/kernels/cuda:register, or :register_emulated).
//
//   const bool kRegistered = [] {
//     SetDeviceBackend(DeviceType::kCuda, {&CountGpus, &OpenGpu, &Report});
//     return true;
//   }();
//   if (const DeviceBackend* backend = FindDeviceBackend(device.type)) {
//     kernels = backend->open(device, options);
//   }
//
// Threads: SetDeviceBackend() before main(), the other functions any.

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
  // Returns the number of these devices that this process can use.
  //   kUnavailable: no driver.
  absl::StatusOr<int> (*count)() = nullptr;
  absl::StatusOr<std::unique_ptr<Kernels>> (*open)(
      Device device, const KernelOptions& options) = nullptr;
  // Describes the devices and the paths between them; null: no report.
  GpuReport (*report)() = nullptr;
};

// Registers the kernel set of a type; once for each type.
void SetDeviceBackend(DeviceType type, const DeviceBackend& backend);
// Returns null if this build has no set for `type`.
const DeviceBackend* FindDeviceBackend(DeviceType type);

}  // namespace troupe::nn

#endif  // NN_KERNELS_DEVICE_BACKENDS_H_
