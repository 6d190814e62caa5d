// Opens the kernel set of a device.
//
//   TROUPE_RETURN_IF_ERROR(CheckDevices(device, /*ranks=*/2));
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Kernels> kernels,
//                           OpenKernels(device.ForRank(rank), /*options=*/{}));

#ifndef NN_KERNELS_OPEN_KERNELS_H_
#define NN_KERNELS_OPEN_KERNELS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn/kernels/kernel_options.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/device.h"

namespace troupe::nn {

// `device` names a single one; Device::ForRank() chooses it if each rank has
// its own.
//   kUnimplemented: the device has no kernel set in this build.
//   kUnavailable:   this machine has no such device, or no driver.
absl::StatusOr<std::unique_ptr<Kernels>> OpenKernels(
    Device device, const KernelOptions& options);

// Checks that `device` exists for each of `ranks` ranks of this process.
//   Errors: the same as OpenKernels(), with the numbers needed and found.
absl::Status CheckDevices(Device device, int ranks);

}  // namespace troupe::nn

#endif  // NN_KERNELS_OPEN_KERNELS_H_
