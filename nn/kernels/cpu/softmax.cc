#include "nn/kernels/softmax.h"

#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

absl::Status SoftmaxForward(CpuDevice& cpu, SoftmaxForm form, In x, Tensor& y) {
  const std::int64_t C = x.dim(-1);
  const auto run = form == SoftmaxForm::kLog ? cpu.loops().log_softmax_row
                                             : cpu.loops().softmax_row;
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (std::int64_t i = 0; i < x.numel(); i += C) run(C, from + i, to + i);
  return absl::OkStatus();
}

absl::Status SoftmaxBackward(CpuDevice& cpu, SoftmaxForm form, In y, In dy,
                             Tensor& dx) {
  const std::int64_t C = y.dim(-1);
  const auto run = form == SoftmaxForm::kLog
                       ? cpu.loops().log_softmax_row_backward
                       : cpu.loops().softmax_row_backward;
  const float* value = y.data<float>();
  const float* from = dy.data<float>();
  float* to = dx.data<float>();
  for (std::int64_t i = 0; i < y.numel(); i += C) {
    run(C, value + i, from + i, to + i);
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, SoftmaxKernels& ops) {
  BindF32<SoftmaxForward>(cpu, ops.SoftmaxForward);
  BindF32<SoftmaxBackward>(cpu, ops.SoftmaxBackward);
}

}  // namespace troupe::nn::cpu
