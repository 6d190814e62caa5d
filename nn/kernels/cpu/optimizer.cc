#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

SgdScalars ScalarsOf(const SgdStep& step) {
  SgdScalars s;
  s.lr = static_cast<float>(step.lr);
  s.momentum = static_cast<float>(step.momentum);
  s.undampened = static_cast<float>(1.0 - step.dampening);
  s.weight_decay = static_cast<float>(step.weight_decay);
  s.inverse_divisor = static_cast<float>(step.InverseDivisor());
  s.nesterov = step.nesterov;
  s.first_step = step.first_step;
  return s;
}

absl::Status SgdUpdate(CpuDevice& cpu, const SgdStep& step, In grad,
                       Tensor& param, Tensor& momentum) {
  const bool has_momentum = step.momentum != 0 && momentum.defined();
  cpu.loops().sgd(param.numel(), ScalarsOf(step), grad.data<float>(),
                  param.data<float>(),
                  has_momentum ? momentum.data<float>() : nullptr);
  return absl::OkStatus();
}

}  // namespace

void BindOptimizer(CpuDevice& cpu, OptimizerKernels& ops) {
  BindF32<SgdUpdate>(cpu, ops.SgdUpdate);
}

}  // namespace troupe::nn::cpu
