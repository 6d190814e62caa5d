// How the reference kernels read and write: every floating element becomes a
// double, is computed as a double, and is rounded once when it is stored.
//
//   return ForFloating("Add", y.dtype(), [&](auto element) {
//     using T = decltype(element);
//     y.data<T>()[0] = Store<T>(Load(a.data<T>()[0]) + Load(b.data<T>()[0]));
//     return absl::OkStatus();
//   });

#ifndef NN_KERNELS_REFERENCE_ELEMENT_H_
#define NN_KERNELS_REFERENCE_ELEMENT_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "nn/kernels/op.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn::reference {

inline double Load(float value) { return value; }
inline double Load(double value) { return value; }
inline double Load(bf16 value) { return value.ToFloat(); }
inline double Load(f16 value) { return value.ToFloat(); }

// `value` as f32, rounded to odd: an inexact result keeps its last bit set, so
// that rounding it once more, to 16 bits, rounds as if from the f64 itself
// (Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded sums").
inline float RoundToOdd(double value) {
  float f = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(f) == value) return f;
  if (std::fabs(static_cast<double>(f)) > std::fabs(value)) {
    f = std::nextafter(f, 0.0f);
  }
  std::uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  bits |= 1u;
  std::memcpy(&f, &bits, sizeof(bits));
  return f;
}

// Rounds to nearest, ties to even, once.
template <typename T>
T Store(double value);
template <>
inline float Store<float>(double value) {
  return static_cast<float>(value);
}
template <>
inline double Store<double>(double value) {
  return value;
}
template <>
inline bf16 Store<bf16>(double value) {
  return bf16::FromFloat(RoundToOdd(value));
}
template <>
inline f16 Store<f16>(double value) {
  return f16::FromFloat(RoundToOdd(value));
}

// fn(T{}), a Status, for the element type T of `dtype`.
//   kUnimplemented: `dtype` is not a floating type.
template <typename Fn>
absl::Status ForFloating(const char* op, DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kF32:
      return fn(float{});
    case DType::kF64:
      return fn(double{});
    case DType::kBF16:
      return fn(bf16{});
    case DType::kF16:
      return fn(f16{});
    default:
      return DoesNotCompute(op, dtype, Device{DeviceType::kReference, 0});
  }
}

}  // namespace troupe::nn::reference

#endif  // NN_KERNELS_REFERENCE_ELEMENT_H_
