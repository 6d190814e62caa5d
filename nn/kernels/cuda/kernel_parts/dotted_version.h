// The version of cuBLASLt, cuDNN or NCCL as text; all three number themselves
// as 10000 major + 100 minor + patch.
//
//   DottedVersion(91900);    // "9.19.0"

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_DOTTED_VERSION_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_DOTTED_VERSION_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace troupe::nn::cuda {

inline std::string DottedVersion(std::size_t version) {
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_DOTTED_VERSION_H_
