#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

absl::Status SetStepScalars(CpuDevice&, const StepScalars& values,
                            Tensor& scalars) {
  ScalarsIn(scalars) = values;
  return absl::OkStatus();
}

SgdScalars RoundedOnce(const SgdRule& rule, const StepScalars& scalars) {
  SgdScalars s;
  s.lr = static_cast<float>(scalars.lr * rule.lr_factor);
  s.momentum = static_cast<float>(rule.momentum);
  s.undampened = static_cast<float>(1.0 - rule.dampening);
  s.weight_decay = static_cast<float>(rule.weight_decay);
  s.inverse_divisor = static_cast<float>(scalars.InverseDivisor());
  s.nesterov = rule.nesterov;
  s.first_step = scalars.step == 0;
  return s;
}

absl::Status SgdUpdate(CpuDevice& cpu, const SgdRule& rule, In scalars, In grad,
                       Tensor& param, Tensor& momentum) {
  const StepScalars& values = ScalarsIn(scalars);
  if (values.non_finite != 0) return absl::OkStatus();
  const bool has_momentum = rule.momentum != 0 && momentum.defined();
  cpu.loops().sgd(param.numel(), RoundedOnce(rule, values), grad.data<float>(),
                  param.data<float>(),
                  has_momentum ? momentum.data<float>() : nullptr);
  return absl::OkStatus();
}

}  // namespace

void BindOptimizer(CpuDevice& cpu, OptimizerKernels& ops) {
  ops.SetStepScalars.Bind<SetStepScalars>(&cpu);
  BindF32<SgdUpdate>(cpu, ops.SgdUpdate);
}

}  // namespace troupe::nn::cpu
