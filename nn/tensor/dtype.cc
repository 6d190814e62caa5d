#include "nn/tensor/dtype.h"

#include "absl/strings/str_cat.h"

namespace troupe::nn {
namespace {

struct Row {
  DType dtype;
  absl::string_view name;
  std::size_t bytes;
};

constexpr Row kRows[] = {
    {DType::kF32, "f32", 4}, {DType::kF64, "f64", 8}, {DType::kBF16, "bf16", 2},
    {DType::kF16, "f16", 2}, {DType::kI32, "i32", 4}, {DType::kI64, "i64", 8},
    {DType::kU8, "u8", 1},
};

const Row& RowOf(DType dtype) { return kRows[static_cast<int>(dtype)]; }

}  // namespace

std::size_t SizeOf(DType dtype) { return RowOf(dtype).bytes; }

absl::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no dtype is called \"", name,
                   "\"; there are f32, f64, bf16, f16, i32, i64 and u8"));
}

bool IsFloating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 ||
         dtype == DType::kBF16 || dtype == DType::kF16;
}

}  // namespace troupe::nn
