#include "nn/kernels/unary.h"

#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

absl::Status UnaryForward(CpuDevice& cpu, UnaryFunction f, double p, In x,
                          Tensor& y) {
  cpu.loops().unary_forward(f, static_cast<float>(p), x.numel(),
                            x.data<float>(), y.data<float>());
  return absl::OkStatus();
}

absl::Status UnaryBackward(CpuDevice& cpu, UnaryFunction f, double p, In saved,
                           In dy, Tensor& dx) {
  cpu.loops().unary_backward(f, static_cast<float>(p), dy.numel(),
                             saved.data<float>(), dy.data<float>(),
                             dx.data<float>());
  return absl::OkStatus();
}

}  // namespace

void BindUnary(CpuDevice& cpu, UnaryKernels& ops) {
  BindF32<UnaryForward>(cpu, ops.UnaryForward);
  BindF32<UnaryBackward>(cpu, ops.UnaryBackward);
}

}  // namespace troupe::nn::cpu
