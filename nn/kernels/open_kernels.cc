#include "nn/kernels/open_kernels.h"

#include "absl/strings/str_cat.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"

namespace troupe::nn {

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
  return absl::UnimplementedError(absl::StrCat(
      "no kernels for ", device.ToString(), "; use cpu:0 or reference:0"));
}

}  // namespace troupe::nn
