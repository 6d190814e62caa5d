#include "nn/kernels/open_kernels.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/device_backends.h"
#include "nn/kernels/reference/reference_kernels.h"

namespace troupe::nn {
namespace {

absl::Status NoKernels(Device device) {
  if (device.type != DeviceType::kCuda) {
    return absl::UnimplementedError(absl::StrCat(
        "no kernels for ", device.ToString(), "; use cpu:0 or reference:0"));
  }
  return absl::UnimplementedError(
      absl::StrCat("no kernels for ", device.ToString(),
                   ": this program was built without CUDA; build it with "
                   "--config=cuda, or use cpu:0"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernels>> OpenKernels(
    Device device, const KernelOptions& options) {
  switch (device.type) {
    case DeviceType::kCpu: {
      CpuKernelOptions cpu;
      cpu.threads = options.threads;
      return CreateCpuKernels(cpu);
    }
    case DeviceType::kReference:
      return CreateReferenceKernels();
    case DeviceType::kCuda:
    case DeviceType::kQueued:
      break;
  }
  const DeviceBackend* const backend = FindDeviceBackend(device.type);
  if (backend == nullptr) return NoKernels(device);
  TROUPE_RETURN_IF_ERROR(CheckDevices(device, /*ranks=*/1));
  return backend->open(device, options);
}

absl::Status CheckDevices(Device device, int ranks) {
  if (device.is_host()) return absl::OkStatus();
  const DeviceBackend* const backend = FindDeviceBackend(device.type);
  if (backend == nullptr) return NoKernels(device);
  TROUPE_ASSIGN_OR_RETURN(const int count, backend->count());
  const std::string sees =
      absl::StrCat("this process sees ", count, count == 1 ? " GPU" : " GPUs");
  if (device.index >= count || count == 0) {
    return absl::UnavailableError(
        absl::StrCat("there is no ", device.ForRank(0).ToString(), ": ", sees,
                     "; set CUDA_VISIBLE_DEVICES to choose which"));
  }
  if (device.index == Device::kOneForEach && ranks > count) {
    return absl::UnavailableError(absl::StrCat(
        ranks, " ranks of this host need a GPU each, and ", sees,
        "; run fewer ranks, or put all on one with device = \"cuda:0\""));
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
