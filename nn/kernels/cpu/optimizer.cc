#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "nn/kernels/cpu/widening.h"
#include "nn/random/philox.h"

namespace troupe::nn::cpu {
namespace {

absl::Status SetStepScalars(CpuDevice&, const StepScalars& values,
                            Tensor& scalars) {
  ScalarsIn(scalars) = values;
  return absl::OkStatus();
}

absl::Status CountFrom(CpuDevice&, double first, In scalars, Tensor& counted) {
  StepScalars values = ScalarsIn(scalars);
  values.CountFrom(first);
  ScalarsIn(counted) = values;
  return absl::OkStatus();
}

absl::Status ApplyLossScale(CpuDevice&, In state, Tensor& scalars) {
  LossScaleIn(state).ApplyTo(ScalarsIn(scalars));
  return absl::OkStatus();
}

absl::Status UpdateLossScale(CpuDevice&, const LossScaleRule& rule, In scalars,
                             Tensor& state) {
  LossScaleIn(state).Update(rule, ScalarsIn(scalars));
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

AdamScalars RoundedOnce(const AdamRule& rule, const StepScalars& scalars) {
  AdamScalars s;
  s.one_minus_beta1 = static_cast<float>(1 - rule.beta1);
  s.beta2 = static_cast<float>(rule.beta2);
  s.one_minus_beta2 = static_cast<float>(1 - rule.beta2);
  s.eps = static_cast<float>(rule.eps);
  s.inverse_divisor = static_cast<float>(scalars.InverseDivisor());
  s.inverse_root2 = static_cast<float>(1 / std::sqrt(scalars.bias_correction2));
  const double lr = scalars.lr * rule.lr_factor;
  s.weight_decay = static_cast<float>(rule.decoupled ? 0 : rule.weight_decay);
  s.shrink =
      static_cast<float>(rule.decoupled ? 1 - lr * rule.weight_decay : 1);
  s.step_size = static_cast<float>(lr / scalars.bias_correction1);
  return s;
}

absl::Status AdamUpdate(CpuDevice& cpu, const AdamRule& rule, In scalars,
                        In grad, Tensor& param, Tensor& exp_avg,
                        Tensor& exp_avg_sq, Tensor& max_exp_avg_sq) {
  const StepScalars& values = ScalarsIn(scalars);
  if (values.non_finite != 0) return absl::OkStatus();
  cpu.loops().adam(param.numel(), RoundedOnce(rule, values), grad.data<float>(),
                   param.data<float>(), exp_avg.data<float>(),
                   exp_avg_sq.data<float>(),
                   rule.amsgrad ? max_exp_avg_sq.data<float>() : nullptr);
  return absl::OkStatus();
}

absl::Status LambDirection(CpuDevice& cpu, const AdamRule& rule, In scalars,
                           In grad, In param, Tensor& exp_avg,
                           Tensor& exp_avg_sq, Tensor& direction) {
  const StepScalars& values = ScalarsIn(scalars);
  if (values.non_finite != 0) {
    cpu.loops().fill(direction.numel(), 0.0f, direction.data<float>());
    return absl::OkStatus();
  }
  AdamScalars step = RoundedOnce(rule, values);
  step.weight_decay = static_cast<float>(rule.weight_decay);
  step.step_size = static_cast<float>(1 / values.bias_correction1);
  cpu.loops().lamb_direction(param.numel(), step, grad.data<float>(),
                             param.data<float>(), exp_avg.data<float>(),
                             exp_avg_sq.data<float>(), direction.data<float>());
  return absl::OkStatus();
}

absl::Status LambUpdate(CpuDevice& cpu, double lr_factor, In scalars,
                        In squares, In direction, Tensor& param) {
  const StepScalars& values = ScalarsIn(scalars);
  if (values.non_finite != 0) return absl::OkStatus();
  const double* of = squares.data<double>();
  const double trust = of[0] > 0 && of[1] > 0 ? std::sqrt(of[0] / of[1]) : 1;
  cpu.loops().add_scaled(param.numel(),
                         static_cast<float>(-values.lr * lr_factor * trust),
                         direction.data<float>(), param.data<float>());
  return absl::OkStatus();
}

// Returns the factor of lr for one parameter.
double LarsTrust(const LarsRule& rule, const StepScalars& scalars,
                 const double* squares) {
  const double param = std::sqrt(squares[0]);
  const double grad = std::sqrt(squares[1]) * scalars.InverseDivisor();
  if (!(param > 0 && grad > 0)) return 1;
  return rule.trust_coefficient * param /
         (grad + rule.weight_decay * param + rule.eps);
}

absl::Status LarsUpdate(CpuDevice& cpu, const LarsRule& rule, In scalars,
                        In squares, In grad, Tensor& param, Tensor& momentum) {
  const StepScalars& values = ScalarsIn(scalars);
  if (values.non_finite != 0) return absl::OkStatus();
  LarsScalars step;
  step.rate =
      static_cast<float>(values.lr * rule.lr_factor *
                         LarsTrust(rule, values, squares.data<double>()));
  step.momentum = static_cast<float>(rule.momentum);
  step.weight_decay = static_cast<float>(rule.weight_decay);
  step.inverse_divisor = static_cast<float>(values.InverseDivisor());
  cpu.loops().lars(param.numel(), step, grad.data<float>(), param.data<float>(),
                   rule.momentum != 0 ? momentum.data<float>() : nullptr);
  return absl::OkStatus();
}

absl::Status AddSquares(CpuDevice& cpu, In x, Tensor& sum) {
  sum.data<double>()[0] += cpu.loops().square_sum(x.numel(), x.data<float>());
  return absl::OkStatus();
}

absl::Status SetClipFactor(CpuDevice&, double max_norm, Tensor& scalars) {
  ScalarsIn(scalars).SetClipFactor(max_norm);
  return absl::OkStatus();
}

absl::Status ClipGradient(CpuDevice& cpu, double limit, In scalars, In grad,
                          Tensor& clipped) {
  const StepScalars& values = ScalarsIn(scalars);
  cpu.loops().clip(grad.numel(), static_cast<float>(limit * values.Divisor()),
                   grad.data<float>(), clipped.data<float>());
  return absl::OkStatus();
}

absl::Status EmaUpdate(CpuDevice& cpu, double decay, In scalars, In param,
                       Tensor& average) {
  if (ScalarsIn(scalars).non_finite != 0) return absl::OkStatus();
  cpu.loops().move_towards(param.numel(), static_cast<float>(1 - decay),
                           param.data<float>(), average.data<float>());
  return absl::OkStatus();
}

absl::Status RoundAtRandom(CpuDevice&, const RoundingDraws& draws, In scalars,
                           In values, Tensor& rounded) {
  constexpr std::int64_t kBlock = 4, kAtOnce = 1024;
  RandomPosition at;
  at.step = static_cast<std::uint32_t>(ScalarsIn(scalars).step);
  at.path = draws.path;
  const float* from = values.data<float>();
  bf16* to = rounded.data<bf16>();
  std::array<std::uint32_t, kAtOnce> words;
  for (std::int64_t i = 0; i < values.numel();) {
    const std::int64_t draw = draws.first + i, begun = draw % kBlock;
    const std::int64_t count = std::min(kAtOnce - begun, values.numel() - i);
    FillBits32(draws.key, at, static_cast<std::uint32_t>(draw / kBlock),
               absl::MakeSpan(words).first(begun + count));
    for (std::int64_t k = 0; k < count; ++k) {
      std::uint32_t bits;
      std::memcpy(&bits, from + i + k, sizeof(bits));
      bits += words[begun + k] & 0xffff;
      to[i + k] = std::isnan(from[i + k])
                      ? bf16::FromFloat(from[i + k])
                      : bf16{static_cast<std::uint16_t>(bits >> 16)};
    }
    i += count;
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, OptimizerKernels& ops) {
  ops.SetStepScalars.Bind<SetStepScalars>(&cpu);
  ops.CountFrom.Bind<CountFrom>(&cpu);
  ops.ApplyLossScale.Bind<ApplyLossScale>(&cpu);
  ops.UpdateLossScale.Bind<UpdateLossScale>(&cpu);
  BindF32<SgdUpdate>(cpu, ops.SgdUpdate);
  BindF32<AdamUpdate>(cpu, ops.AdamUpdate);
  BindF32<LambDirection>(cpu, ops.LambDirection);
  BindF32<LambUpdate>(cpu, ops.LambUpdate);
  BindF32<LarsUpdate>(cpu, ops.LarsUpdate);
  BindF32<AddSquares>(cpu, ops.AddSquares);
  ops.SetClipFactor.Bind<SetClipFactor>(&cpu);
  BindF32<ClipGradient>(cpu, ops.ClipGradient);
  BindF32<EmaUpdate>(cpu, ops.EmaUpdate);
  ops.RoundAtRandom.Bind<RoundAtRandom>(&cpu);
}

}  // namespace troupe::nn::cpu
