// Element types of tensors, and how f32 becomes the two 16-bit storage types.
//
//   DType t = *ParseDType("bf16");
//   size_t bytes = 10 * SizeOf(t);
//   bf16 b = bf16::FromFloat(1.5f);       // round to nearest, ties to even
//   float f = b.ToFloat();                // exact
//
// f16 and bf16 are storage types on the CPU: kernels convert, compute in f32
// and convert back. NaN stays NaN; overflow to f16 gives infinity.

#ifndef NN_TENSOR_DTYPE_H_
#define NN_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::nn {

enum class DType : std::uint8_t { kF32, kF64, kBF16, kF16, kI32, kI64, kU8 };

// Bytes of one element.
std::size_t SizeOf(DType dtype);

// "f32", "f64", "bf16", "f16", "i32", "i64", "u8".
absl::string_view DTypeName(DType dtype);
absl::StatusOr<DType> ParseDType(absl::string_view name);

bool IsFloating(DType dtype);

struct bf16 {
  std::uint16_t bits = 0;

  static bf16 FromFloat(float value);
  float ToFloat() const {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }
};

struct f16 {
  std::uint16_t bits = 0;

  static f16 FromFloat(float value);
  float ToFloat() const;
};

// DTypeOf<float>::value == DType::kF32, and so on.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kU8;
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_DTYPE_H_
