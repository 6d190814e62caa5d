#include "nn/kernels/cpu/convert.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace troupe::nn::cpu {
namespace {

template <typename From, typename To>
void Convert(const Tensor& x, Tensor& y) {
  const From* from = x.data<From>();
  To* to = y.data<To>();
  const std::int64_t n = x.numel();
  for (std::int64_t i = 0; i < n; ++i) to[i] = FromF64<To>(ToF64(from[i]));
}

template <typename From>
bool ConvertFrom(const Tensor& x, Tensor& y) {
  switch (y.dtype()) {
    case DType::kF32:
      Convert<From, float>(x, y);
      return true;
    case DType::kF64:
      Convert<From, double>(x, y);
      return true;
    case DType::kBF16:
      Convert<From, bf16>(x, y);
      return true;
    case DType::kF16:
      Convert<From, f16>(x, y);
      return true;
    default:
      return false;
  }
}

using WidenFn = decltype(Loops::widen_f16);
using NarrowFn = decltype(Loops::narrow_f16);

// Returns null for a dtype of another width.
WidenFn WidenOf(const Loops& loops, DType from) {
  if (from == DType::kBF16) return loops.widen_bf16;
  return from == DType::kF16 ? loops.widen_f16 : nullptr;
}

NarrowFn NarrowOf(const Loops& loops, DType to) {
  if (to == DType::kBF16) return loops.narrow_bf16;
  return to == DType::kF16 ? loops.narrow_f16 : nullptr;
}

template <typename T>
void FillWith(T value, Tensor& y) {
  for (T& v : y.span<T>()) v = value;
}

template <typename T>
bool FillInteger(double value, Tensor& y) {
  const double least = static_cast<double>(std::numeric_limits<T>::min());
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const bool holds = value >= least && value < beyond;
  if (!holds || value != std::floor(value)) return false;
  FillWith(static_cast<T>(value), y);
  return true;
}

}  // namespace

bool ConvertAny(const Loops& loops, const Tensor& x, Tensor& y) {
  if (x.dtype() == y.dtype()) {
    if (x.bytes() > 0) std::memmove(y.raw(), x.raw(), x.bytes());
    return true;
  }
  if (y.dtype() == DType::kF32) {
    if (WidenFn widen = WidenOf(loops, x.dtype())) {
      widen(x.numel(), static_cast<const std::uint16_t*>(x.raw()),
            y.data<float>());
      return true;
    }
  }
  if (x.dtype() == DType::kF32) {
    if (NarrowFn narrow = NarrowOf(loops, y.dtype())) {
      narrow(x.numel(), x.data<float>(), static_cast<std::uint16_t*>(y.raw()));
      return true;
    }
  }
  switch (x.dtype()) {
    case DType::kF32:
      return ConvertFrom<float>(x, y);
    case DType::kF64:
      return ConvertFrom<double>(x, y);
    case DType::kBF16:
      return ConvertFrom<bf16>(x, y);
    case DType::kF16:
      return ConvertFrom<f16>(x, y);
    default:
      return false;
  }
}

bool FillAny(double value, Tensor& y) {
  switch (y.dtype()) {
    case DType::kF32:
      FillWith(static_cast<float>(value), y);
      return true;
    case DType::kF64:
      FillWith(value, y);
      return true;
    case DType::kBF16:
      FillWith(bf16::FromDouble(value), y);
      return true;
    case DType::kF16:
      FillWith(f16::FromDouble(value), y);
      return true;
    case DType::kI32:
      return FillInteger<std::int32_t>(value, y);
    case DType::kI64:
      return FillInteger<std::int64_t>(value, y);
    case DType::kU8:
      return FillInteger<std::uint8_t>(value, y);
  }
  return false;
}

}  // namespace troupe::nn::cpu
