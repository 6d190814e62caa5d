#include <nccl.h>

#include "absl/strings/str_cat.h"
#include "nn/kernels/cuda/libraries/gpu_report.h"

namespace troupe::nn::cuda {

// 22809 is 2.28.9.
std::string NcclName() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "NCCL ?";
  return absl::StrCat("NCCL ", version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

}  // namespace troupe::nn::cuda
