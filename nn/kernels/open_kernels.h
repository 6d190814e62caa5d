// Opens the kernel set of a device.
//
//   std::unique_ptr<Kernels> kernels = *OpenKernels(Device{}, /*options=*/{});

#ifndef NN_KERNELS_OPEN_KERNELS_H_
#define NN_KERNELS_OPEN_KERNELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/device.h"

namespace troupe::nn {

struct KernelOptions {
  // Threads that one call may use; part of the plan, since it can change bits.
  int threads = 1;
};

//   kUnimplemented: the device has no kernel set in this build.
absl::StatusOr<std::unique_ptr<Kernels>> OpenKernels(
    Device device, const KernelOptions& options);

}  // namespace troupe::nn

#endif  // NN_KERNELS_OPEN_KERNELS_H_
