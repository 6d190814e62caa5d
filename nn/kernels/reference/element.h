// Element access of the reference kernels: every floating element is loaded as
// a double, computed as a double, and rounded once when it is stored.
//
//   return ForFloating("Add", y.dtype(), [&](auto element) {
//     using T = decltype(element);
//     y.data<T>()[0] = Store<T>(Load(a.data<T>()[0]) + Load(b.data<T>()[0]));
//     return absl::OkStatus();
//   });

#ifndef NN_KERNELS_REFERENCE_ELEMENT_H_
#define NN_KERNELS_REFERENCE_ELEMENT_H_

#include "absl/status/status.h"
#include "nn/kernels/op.h"
#include "nn/tensor/dtype.h"

namespace troupe::nn::reference {

template <typename T>
double Load(T value) {
  return ToF64(value);
}
// Rounds to nearest, ties to even, once.
template <typename T>
T Store(double value) {
  return FromF64<T>(value);
}

// Calls fn(T{}), which returns a Status, for the element type T of `dtype`.
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
