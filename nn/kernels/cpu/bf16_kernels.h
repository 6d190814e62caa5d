// Kernels that compute with bf16 directly, on a CPU with dot products of bf16
// pairs, and how an op gets one beside its f32 kernel:
//
//   BindF32AndBF16<LinearForward, LinearForwardBF16>(cpu, ops.LinearForward);
//
// These kernels return whether they computed the result; if not (the CPU lacks
// the instructions, or f32 copies are faster for the shape), the op uses f32
// copies (widening.h). Sums are in f32 and results rounded once, as with
// copies. The choice depends on the CPU, the options of the kernel set, and the
// shape.

#ifndef NN_KERNELS_CPU_BF16_KERNELS_H_
#define NN_KERNELS_CPU_BF16_KERNELS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "nn/kernels/cpu/cpu_device.h"
#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {

// Returns the bits of a bf16 tensor; null if `t` is undefined, as a bias may
// be.
inline std::uint16_t* BitsOf(const Tensor& t) {
  return t.defined() ? static_cast<std::uint16_t*>(t.raw()) : nullptr;
}

// Operands of nn/kernels/linear.h.
absl::StatusOr<bool> LinearForwardBF16(CpuDevice& cpu, In x, In w, In b,
                                       Tensor& y);
// dx may be f32: it is not rounded then.
absl::StatusOr<bool> LinearBackwardInputBF16(CpuDevice& cpu, In dy, In w,
                                             Tensor& dx);
absl::StatusOr<bool> LinearBackwardWeightBF16(CpuDevice& cpu, In x, In dy,
                                              bool accumulate, Tensor& dw,
                                              Tensor& db);

absl::StatusOr<bool> LinearBackwardWeightRowsBF16(CpuDevice& cpu, In x, In dy,
                                                  std::int64_t begin,
                                                  Tensor& dw);
// Returns the least number of rows of a weight's gradient that have the same
// bits as in the whole, if n samples are summed up; 0: no number does.
std::int64_t LinearRowsMinBF16(const CpuDevice& cpu, std::int64_t n);
// Operands of nn/kernels/conv2d.h.
absl::StatusOr<bool> Conv2dForwardBF16(CpuDevice& cpu, const Window2d& window,
                                       In x, In w, In b, Tensor& y);
absl::StatusOr<bool> Conv2dBackwardInputBF16(CpuDevice& cpu,
                                             const Window2d& window, In dy,
                                             In w, Tensor& dx);
absl::StatusOr<bool> Conv2dBackwardWeightBF16(CpuDevice& cpu,
                                              const Window2d& window, In x,
                                              In dy, bool accumulate,
                                              Tensor& dw, Tensor& db);

// db[M] (+)= sum over N of dy[N, M]
absl::Status ColumnSumsBF16(CpuDevice& cpu, In dy, bool accumulate, Tensor& db);

template <auto kKernel, auto kBF16Kernel, typename... Args>
void BindF32AndBF16(CpuDevice& cpu, Op<absl::Status(Args...)>& op) {
  using ThisOp = Op<absl::Status(Args...)>;
  op.BindFunction(
      [](const ThisOp& op, Args... args) -> absl::Status {
        CpuDevice& cpu = op.template state<CpuDevice>();
        if ((IsF32(args) && ...)) return kKernel(cpu, args...);
        if (cpu.bf16_loops() != nullptr &&
            (IsOfType(DType::kBF16, args) && ...)) {
          TROUPE_ASSIGN_OR_RETURN(const bool computed,
                                  kBF16Kernel(cpu, args...));
          if (computed) return absl::OkStatus();
        }
        return RunWidened<kKernel, Args...>(op, cpu, args...);
      },
      &cpu);
}

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_BF16_KERNELS_H_
