#include <nccl.h>

#include "absl/strings/str_cat.h"
#include "nn/kernels/cuda/kernel_parts/dotted_version.h"
#include "nn/kernels/cuda/libraries/gpu_report.h"

namespace troupe::nn::cuda {

std::string NcclName() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "NCCL ?";
  return absl::StrCat("NCCL ",
                      DottedVersion(static_cast<std::size_t>(version)));
}

}  // namespace troupe::nn::cuda
