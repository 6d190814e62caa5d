// bf16 and f16 are storage types on the cpu: a call on these tensors runs on
// f32 copies, and results are rounded once on the way back. An f32 kernel is
// bound through this, so that it need not handle dtypes:
//
//   BindF32<ReluForward>(cpu, ops.ReluForward);
//
// Errors: kUnimplemented, naming op, dtype and device, if an operand is neither
// f32 nor 16 bits wide. Cost: a comparison for each operand; with 16 bits two
// conversions and an f32 copy of each, from the cache.

#ifndef NN_KERNELS_CPU_WIDENING_H_
#define NN_KERNELS_CPU_WIDENING_H_

#include <array>
#include <initializer_list>
#include <tuple>

#include "absl/status/status.h"
#include "nn/kernels/cpu/convert.h"
#include "nn/kernels/cpu/cpu_device.h"
#include "nn/kernels/op.h"

namespace troupe::nn::cpu {

// Operands of one call as f32. Map() converts an argument of an op to that of
// its kernel.
class Widened {
 public:
  explicit Widened(CpuDevice& cpu) : cpu_(cpu) {}

  Tensor Map(In t) { return Copy(t, /*read=*/true); }
  Tensor Map(Out t) { return CopyOfResult(t, /*read=*/false); }
  Tensor Map(InOut t) { return CopyOfResult(t, /*read=*/true); }
  Tensor Map(Grad t) { return CopyOfResult(t, accumulate_); }
  bool Map(bool accumulate) { return accumulate_ = accumulate; }
  template <typename Other>
  const Other& Map(const Other& argument) {
    return argument;
  }

  // Error if there was no memory for a copy; the kernel must not be called
  // then.
  const absl::Status& status() const { return status_; }
  // Rounds the results into the operands.
  void Finish();

 private:
  struct Rounded {
    Tensor wide;
    Tensor* narrow;
  };

  // Returns `t` itself if it is undefined or f32.
  Tensor Copy(const Tensor& t, bool read);
  Tensor CopyOfResult(const Result& result, bool read);

  CpuDevice& cpu_;
  absl::Status status_;
  bool accumulate_ = false;
  std::array<Rounded, 4> results_;
  int count_ = 0;
};

// Returns the dtype of the first operand that cannot be widened; f32 if there
// is none. Skips null pointers.
DType RefusedDType(std::initializer_list<const Tensor*> operands);

template <typename Argument>
bool IsF32(const Argument& argument) {
  const Tensor* const numbers = NumbersOf(argument);
  return numbers == nullptr || numbers->dtype() == DType::kF32;
}
// The same for any dtype; an undefined operand matches every dtype.
template <typename Argument>
bool IsOfType(DType dtype, const Argument& argument) {
  const Tensor* const numbers = NumbersOf(argument);
  return numbers == nullptr || !numbers->defined() || numbers->dtype() == dtype;
}

template <auto kKernel, typename... Args>
absl::Status RunWidened(const Op<absl::Status(Args...)>& op, CpuDevice& cpu,
                        Args... args) {
  const DType refused = RefusedDType({NumbersOf(args)...});
  if (refused != DType::kF32) {
    return DoesNotCompute(op.name(), refused, op.device());
  }
  Widened widened(cpu);
  // Braces: evaluated left to right, so that `accumulate` comes before
  // gradients.
  std::tuple<decltype(widened.Map(args))...> wide{widened.Map(args)...};
  if (!widened.status().ok()) return widened.status();
  const absl::Status status =
      std::apply([&](auto&... each) { return kKernel(cpu, each...); }, wide);
  if (status.ok()) widened.Finish();
  return status;
}

// `kF64Kernel`, if given, is called if the operands are f64.
template <auto kKernel, auto kF64Kernel = nullptr, typename... Args>
void BindF32(CpuDevice& cpu, Op<absl::Status(Args...)>& op) {
  using ThisOp = Op<absl::Status(Args...)>;
  op.BindFunction(
      [](const ThisOp& op, Args... args) -> absl::Status {
        CpuDevice& cpu = op.template state<CpuDevice>();
        if ((IsF32(args) && ...)) return kKernel(cpu, args...);
        if constexpr (kF64Kernel != nullptr) {
          if (DTypeOfNumbers(args...) == DType::kF64) {
            return kF64Kernel(cpu, args...);
          }
        }
        return RunWidened<kKernel, Args...>(op, cpu, args...);
      },
      &cpu);
}

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_WIDENING_H_
