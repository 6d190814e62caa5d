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

std::uint32_t BitsOf(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

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

bf16 bf16::FromFloat(float value) {
  const std::uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {  // NaN: keep it one
    return bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  const std::uint32_t round = 0x7fffu + ((bits >> 16) & 1u);
  return bf16{static_cast<std::uint16_t>((bits + round) >> 16)};
}

f16 f16::FromFloat(float value) {
  const std::uint32_t bits = BitsOf(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return f16{std::uint16_t(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return f16{std::uint16_t(sign | 0x7c00u)};
  if (magnitude < 0x33000001u) return f16{sign};  // below half the smallest
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  // Normal numbers drop 13 bits; subnormals drop one more per missing power.
  const int drop = exponent < -14 ? 13 + (-14 - exponent) : 13;
  const std::uint32_t half = 1u << (drop - 1);
  const std::uint32_t rest = mantissa & ((1u << drop) - 1);
  mantissa >>= drop;
  if (rest > half || (rest == half && (mantissa & 1u))) ++mantissa;
  if (exponent < -14) return f16{std::uint16_t(sign | mantissa)};
  const std::uint32_t biased = static_cast<std::uint32_t>(exponent + 15) << 10;
  // Adding (not or-ing) carries a rounded-up mantissa into the exponent.
  return f16{std::uint16_t(sign | (biased + (mantissa - 0x400u)))};
}

float f16::ToFloat() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  std::uint32_t mantissa = bits & 0x3ffu;
  std::uint32_t wide;
  if (exponent == 0x1fu) {
    wide = sign | 0x7f800000u | (mantissa << 13);
  } else if (exponent != 0) {
    wide = sign | ((exponent + 112u) << 23) | (mantissa << 13);
  } else if (mantissa == 0) {
    wide = sign;
  } else {
    std::uint32_t power = 113;
    while (!(mantissa & 0x400u)) {
      mantissa <<= 1;
      --power;
    }
    wide = sign | (power << 23) | ((mantissa & 0x3ffu) << 13);
  }
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

}  // namespace troupe::nn
