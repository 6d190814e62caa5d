// Dispatches an op to its kernel by dtype, and returns the addresses of its
// operands. A kernel is a template over the type of an element, as in the
// reference kernels:
//
//   struct ReluForward {
//     template <typename T>
//     static absl::Status Run(const CudaOps& cuda, In x, Tensor& y);
//   };
//   BindFloating<ReluForward>(ops.ReluForward, state);   // f32, bf16 and f16
//   BindFloating<Add, WithF64>(ops.Add, state);          // f64, too
//
// Host code.

#ifndef NN_KERNELS_CUDA_KERNEL_PARTS_DISPATCH_H_
#define NN_KERNELS_CUDA_KERNEL_PARTS_DISPATCH_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/op.h"

namespace troupe::nn::cuda {

// The dtype of a device element type.
template <typename T>
struct DeviceDType : DTypeOf<T> {};
template <>
struct DeviceDType<__nv_bfloat16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DeviceDType<__half> {
  static constexpr DType value = DType::kF16;
};

// Returns the device address of the elements of `t`.
template <typename T>
T* Data(const Tensor& t) {
  TROUPE_CHECK(t.dtype() == DeviceDType<T>::value,
               "an operand has the dtype that its op names");
  return static_cast<T*>(t.device_data());
}
template <typename T>
T* DataOrNull(const Tensor& t) {
  return t.defined() ? Data<T>(t) : nullptr;
}

struct WithF64 {};

// Returns fn(T{}), a Status, for the device element type T of `dtype`, which
// may be f64 only if `Extra` is WithF64.
template <typename Extra, typename Fn>
absl::Status ForFloating(const char* op, DType dtype, Device device, Fn fn) {
  switch (dtype) {
    case DType::kF32:
      return fn(float{});
    case DType::kBF16:
      return fn(__nv_bfloat16{});
    case DType::kF16:
      return fn(__half{});
    case DType::kF64:
      if constexpr (std::is_same_v<Extra, WithF64>) return fn(double{});
      [[fallthrough]];
    default:
      return DoesNotCompute(op, dtype, device);
  }
}

// Returns kInvalidArgument unless all `numbers` that are defined have `dtype`.
inline absl::Status CheckSameDType(
    const char* op, DType dtype, std::initializer_list<const Tensor*> numbers) {
  for (const Tensor* t : numbers) {
    if (t == nullptr || !t->defined() || t->dtype() == dtype) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        op, ": operands of ", DTypeName(dtype), " and ", DTypeName(t->dtype()),
        "; convert one, since on a GPU they have one dtype"));
  }
  return absl::OkStatus();
}

template <typename Kernel, typename Extra = void, typename... Args>
void BindFloating(Op<absl::Status(Args...)>& op, CudaOps* state) {
  using ThisOp = Op<absl::Status(Args...)>;
  op.BindFunction(
      [](const ThisOp& op, Args... args) -> absl::Status {
        const DType dtype = DTypeOfNumbers(args...);
        TROUPE_RETURN_IF_ERROR(
            CheckSameDType(op.name(), dtype, {NumbersOf(args)...}));
        return ForFloating<Extra>(
            op.name(), dtype, op.device(), [&](auto element) {
              return Kernel::template Run<decltype(element)>(
                  op.template state<CudaOps>(), args...);
            });
      },
      state);
}

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_KERNEL_PARTS_DISPATCH_H_
