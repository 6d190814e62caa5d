// Checks of extents, dtypes and pointers that products, convolutions and
// attention share.
//
//   TROUPE_RETURN_IF_ERROR(CheckDTypes(key, dtype, out_dtype));
//   return CheckPointers(key, {{"a", operands.a, /*needed=*/true}});
//
// Errors are kInvalidArgument and begin with the key of the spec.

#ifndef NN_KERNELS_CUDA_LIBRARIES_OPERAND_CHECKS_H_
#define NN_KERNELS_CUDA_LIBRARIES_OPERAND_CHECKS_H_

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn::cuda {

// Alignment of every operand and workspace. The libraries' fast kernels read 16
// bytes at a time.
inline constexpr std::int64_t kOperandAlignmentBytes = 16;

// Limit on an extent: libraries count extents of matrices in 32 bits.
inline constexpr std::int64_t kExtentMax = (std::int64_t{1} << 31) - 1;

inline absl::Status CheckDTypes(absl::string_view key, DType dtype,
                                DType out_dtype) {
  if (dtype != DType::kF32 && dtype != DType::kBF16 && dtype != DType::kF16) {
    return absl::InvalidArgumentError(
        absl::StrCat(key, ": operands must be f32, bf16 or f16"));
  }
  if (out_dtype != DType::kF32 && out_dtype != dtype) {
    return absl::InvalidArgumentError(absl::StrCat(
        key, ": the result must be f32 or have the dtype of the operands"));
  }
  return absl::OkStatus();
}

struct CheckedPointer {
  absl::string_view name;
  const void* data;
  bool needed;
};

inline absl::Status CheckPointers(
    absl::string_view key, std::initializer_list<CheckedPointer> pointers) {
  for (const CheckedPointer& p : pointers) {
    if (!p.needed) continue;
    if (p.data == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": operand ", p.name, " is missing; pass it"));
    }
    if (reinterpret_cast<std::uintptr_t>(p.data) % kOperandAlignmentBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          key, ": operand ", p.name, " is not aligned to ",
          kOperandAlignmentBytes, " bytes; copy it to a tensor of its own"));
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_LIBRARIES_OPERAND_CHECKS_H_
