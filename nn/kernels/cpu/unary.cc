#include "nn/kernels/unary.h"

#include "nn/kernels/cpu/row_slices.h"

namespace troupe::nn::cpu {
namespace {

absl::Status UnaryForward(CpuDevice& cpu, UnaryFunction f, double p, In x,
                          Tensor& y) {
  return ForEachRowSlice(cpu, {x.numel()}, {&x}, {&y}, [&](const RowSlice& at) {
    cpu.loops().unary_forward(f, static_cast<float>(p), at.rows, at.in[0],
                              at.out[0]);
  });
}

absl::Status UnaryBackward(CpuDevice& cpu, UnaryFunction f, double p, In saved,
                           In dy, Tensor& dx) {
  return ForEachRowSlice(
      cpu, {dy.numel()}, {&saved, &dy}, {&dx}, [&](const RowSlice& at) {
        cpu.loops().unary_backward(f, static_cast<float>(p), at.rows, at.in[0],
                                   at.in[1], at.out[0]);
      });
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, UnaryKernels& ops) {
  BindByRows<UnaryForward>(cpu, ops.UnaryForward);
  BindByRows<UnaryBackward>(cpu, ops.UnaryBackward);
}

}  // namespace troupe::nn::cpu
