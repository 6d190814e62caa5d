// Element types of tensors, and conversion between f32 and the 16-bit types.
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

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/half.h"

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

  static bf16 FromFloat(float value) { return {base::BF16FromF32(value)}; }
  // Rounds once.
  static bf16 FromDouble(double value) {
    return FromFloat(base::RoundToOdd(value));
  }
  float ToFloat() const { return base::F32FromBF16(bits); }
};

struct f16 {
  std::uint16_t bits = 0;

  static f16 FromFloat(float value) { return {base::F16FromF32(value)}; }
  // Rounds once.
  static f16 FromDouble(double value) {
    return FromFloat(base::RoundToOdd(value));
  }
  float ToFloat() const { return base::F32FromF16(bits); }
};

// Convert any floating element to f64, exactly, and back, rounded once.
inline double ToF64(float value) { return value; }
inline double ToF64(double value) { return value; }
inline double ToF64(bf16 value) { return value.ToFloat(); }
inline double ToF64(f16 value) { return value.ToFloat(); }
template <typename T>
T FromF64(double value) {
  return T::FromDouble(value);
}
template <>
inline float FromF64<float>(double value) {
  return static_cast<float>(value);
}
template <>
inline double FromF64<double>(double value) {
  return value;
}

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
