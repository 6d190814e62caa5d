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

// `device` names one: Device::ForRank() chooses, where each rank has its own.
//   kUnimplemented: the device has no kernel set in this build.
//   kUnavailable:   there is no such device here, or no driver.
absl::StatusOr<std::unique_ptr<Kernels>> OpenKernels(
    Device device, const KernelOptions& options);

// Whether `ranks` ranks of this process find what `device` says.
//   As OpenKernels(). Says how many are asked for, and how many are there.
absl::Status CheckDevices(Device device, int ranks);

}  // namespace troupe::nn

#endif  // NN_KERNELS_OPEN_KERNELS_H_
