#include <cmath>
#include <cstring>

#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

absl::Status SetStepScalars(
    const Op<absl::Status(const StepScalars&, FixedOut)>&,
    const StepScalars& values, FixedOut scalars) {
  ScalarsIn(scalars) = values;
  return absl::OkStatus();
}

absl::Status CountFrom(const Op<absl::Status(double, FixedIn, FixedOut)>&,
                       double first, FixedIn scalars, FixedOut counted) {
  StepScalars values = ScalarsIn(scalars);
  values.CountFrom(first);
  ScalarsIn(counted) = values;
  return absl::OkStatus();
}

absl::Status ApplyLossScale(const Op<absl::Status(FixedIn, FixedOut)>&,
                            FixedIn state, FixedOut scalars) {
  LossScaleIn(state).ApplyTo(ScalarsIn(scalars));
  return absl::OkStatus();
}

absl::Status UpdateLossScale(
    const Op<absl::Status(const LossScaleRule&, FixedIn, FixedOut)>&,
    const LossScaleRule& rule, FixedIn scalars, FixedOut state) {
  LossScaleIn(state).Update(rule, ScalarsIn(scalars));
  return absl::OkStatus();
}

// Returns the mean gradient of an element, clipped, as updates use it.
template <typename T>
double MeanOf(const StepScalars& step, T grad) {
  const double divisor = step.Divisor();
  return divisor == 0 ? 0 * Load(grad)
                      : Load(grad) / divisor * step.grad_factor;
}

struct SgdUpdate {
  template <typename T>
  static absl::Status Run(const SgdRule& rule, FixedIn scalars, In grad,
                          Tensor& param, Tensor& momentum) {
    const StepScalars& step = ScalarsIn(scalars);
    if (step.non_finite != 0) return absl::OkStatus();
    const double lr = step.lr * rule.lr_factor;
    const T* grads = grad.data<T>();
    T* params = param.data<T>();
    T* bufs = rule.momentum != 0 ? momentum.data<T>() : nullptr;
    for (std::int64_t i = 0; i < param.numel(); ++i) {
      const double p = Load(params[i]);
      double g = MeanOf(step, grads[i]) + rule.weight_decay * p;
      if (bufs) {
        const double buf = step.step == 0 ? g
                                          : rule.momentum * Load(bufs[i]) +
                                                (1 - rule.dampening) * g;
        bufs[i] = Store<T>(buf);
        g = rule.nesterov ? g + rule.momentum * buf : buf;
      }
      params[i] = Store<T>(p - lr * g);
    }
    return absl::OkStatus();
  }
};

// m and v of one element after an update.
struct Moments {
  double m, v;
};
template <typename T>
Moments UpdateMoments(const AdamRule& rule, double g, T& exp_avg,
                      T& exp_avg_sq) {
  const double m = Load(exp_avg) + (1 - rule.beta1) * (g - Load(exp_avg));
  const double v = rule.beta2 * Load(exp_avg_sq) + (1 - rule.beta2) * g * g;
  exp_avg = Store<T>(m);
  exp_avg_sq = Store<T>(v);
  return {m, v};
}

struct AdamUpdate {
  template <typename T>
  static absl::Status Run(const AdamRule& rule, FixedIn scalars, In grad,
                          Tensor& param, Tensor& exp_avg, Tensor& exp_avg_sq,
                          Tensor& max_exp_avg_sq) {
    const StepScalars& step = ScalarsIn(scalars);
    if (step.non_finite != 0) return absl::OkStatus();
    const double lr = step.lr * rule.lr_factor;
    const T* grads = grad.data<T>();
    T* params = param.data<T>();
    T* ms = exp_avg.data<T>();
    T* vs = exp_avg_sq.data<T>();
    T* largest = rule.amsgrad ? max_exp_avg_sq.data<T>() : nullptr;
    for (std::int64_t i = 0; i < param.numel(); ++i) {
      double p = Load(params[i]);
      double g = MeanOf(step, grads[i]);
      if (rule.decoupled) {
        p *= 1 - lr * rule.weight_decay;
      } else {
        g += rule.weight_decay * p;
      }
      auto [m, v] = UpdateMoments(rule, g, ms[i], vs[i]);
      if (largest) {
        v = Load(largest[i]) > v ? Load(largest[i]) : v;
        largest[i] = Store<T>(v);
      }
      const double denominator =
          std::sqrt(v) / std::sqrt(step.bias_correction2) + rule.eps;
      params[i] = Store<T>(p - lr / step.bias_correction1 * (m / denominator));
    }
    return absl::OkStatus();
  }
};

struct LambDirection {
  template <typename T>
  static absl::Status Run(const AdamRule& rule, FixedIn scalars, In grad,
                          In param, Tensor& exp_avg, Tensor& exp_avg_sq,
                          Tensor& direction) {
    const StepScalars& step = ScalarsIn(scalars);
    const T* grads = grad.data<T>();
    const T* params = param.data<T>();
    T* ms = exp_avg.data<T>();
    T* vs = exp_avg_sq.data<T>();
    T* to = direction.data<T>();
    for (std::int64_t i = 0; i < param.numel(); ++i) {
      if (step.non_finite != 0) {
        to[i] = T{};
        continue;
      }
      const auto [m, v] =
          UpdateMoments(rule, MeanOf(step, grads[i]), ms[i], vs[i]);
      const double denominator =
          std::sqrt(v) / std::sqrt(step.bias_correction2) + rule.eps;
      to[i] = Store<T>(m / step.bias_correction1 / denominator +
                       rule.weight_decay * Load(params[i]));
    }
    return absl::OkStatus();
  }
};

struct LambUpdate {
  template <typename T>
  static absl::Status Run(double lr_factor, FixedIn scalars, FixedIn squares,
                          In direction, Tensor& param) {
    const StepScalars& step = ScalarsIn(scalars);
    if (step.non_finite != 0) return absl::OkStatus();
    const double* of = squares.tensor.data<double>();
    const double trust = of[0] > 0 && of[1] > 0 ? std::sqrt(of[0] / of[1]) : 1;
    const T* along = direction.data<T>();
    T* params = param.data<T>();
    for (std::int64_t i = 0; i < param.numel(); ++i) {
      params[i] = Store<T>(Load(params[i]) -
                           step.lr * lr_factor * trust * Load(along[i]));
    }
    return absl::OkStatus();
  }
};

double LarsTrust(const LarsRule& rule, const StepScalars& step,
                 const double* squares) {
  const double param = std::sqrt(squares[0]);
  const double grad = std::sqrt(squares[1]) * step.InverseDivisor();
  if (!(param > 0 && grad > 0)) return 1;
  return rule.trust_coefficient * param /
         (grad + rule.weight_decay * param + rule.eps);
}

struct LarsUpdate {
  template <typename T>
  static absl::Status Run(const LarsRule& rule, FixedIn scalars,
                          FixedIn squares, In grad, Tensor& param,
                          Tensor& momentum) {
    const StepScalars& step = ScalarsIn(scalars);
    if (step.non_finite != 0) return absl::OkStatus();
    const double rate = step.lr * rule.lr_factor *
                        LarsTrust(rule, step, squares.tensor.data<double>());
    const T* grads = grad.data<T>();
    T* params = param.data<T>();
    T* bufs = rule.momentum != 0 ? momentum.data<T>() : nullptr;
    for (std::int64_t i = 0; i < param.numel(); ++i) {
      const double p = Load(params[i]);
      double change = rate * (MeanOf(step, grads[i]) + rule.weight_decay * p);
      if (bufs) {
        change += rule.momentum * Load(bufs[i]);
        bufs[i] = Store<T>(change);
      }
      params[i] = Store<T>(p - change);
    }
    return absl::OkStatus();
  }
};

struct AddSquares {
  template <typename T>
  static absl::Status Run(In x, Tensor& sum) {
    double squares = 0;
    const T* from = x.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      squares += Load(from[i]) * Load(from[i]);
    }
    sum.data<double>()[0] += squares;
    return absl::OkStatus();
  }
};

absl::Status SetClipFactor(const Op<absl::Status(double, FixedOut)>&,
                           double max_norm, FixedOut scalars) {
  ScalarsIn(scalars).SetClipFactor(max_norm);
  return absl::OkStatus();
}

struct ClipGradient {
  template <typename T>
  static absl::Status Run(double limit, FixedIn scalars, In grad,
                          Tensor& clipped) {
    const StepScalars& step = ScalarsIn(scalars);
    const double most = limit * step.Divisor();
    const T* from = grad.data<T>();
    T* to = clipped.data<T>();
    for (std::int64_t i = 0; i < grad.numel(); ++i) {
      const double g = Load(from[i]);
      to[i] = Store<T>(g > most ? most : g < -most ? -most : g);
    }
    return absl::OkStatus();
  }
};

struct EmaUpdate {
  template <typename T>
  static absl::Status Run(double decay, FixedIn scalars, In param,
                          Tensor& average) {
    if (ScalarsIn(scalars).non_finite != 0) return absl::OkStatus();
    const T* from = param.data<T>();
    T* to = average.data<T>();
    for (std::int64_t i = 0; i < param.numel(); ++i) {
      const double old = Load(to[i]);
      to[i] = Store<T>(old + (1 - decay) * (Load(from[i]) - old));
    }
    return absl::OkStatus();
  }
};

absl::Status RoundAtRandom(
    const Op<absl::Status(const RoundingDraws&, FixedIn, FixedIn, FixedOut)>&,
    const RoundingDraws& draws, FixedIn scalars, FixedIn values,
    FixedOut rounded) {
  RandomPosition at;
  at.step = static_cast<std::uint32_t>(ScalarsIn(scalars).step);
  at.path = draws.path;
  const float* from = values.tensor.data<float>();
  bf16* to = rounded.tensor.data<bf16>();
  for (std::int64_t i = 0; i < values.tensor.numel(); ++i) {
    const std::int64_t draw = draws.first + i;
    std::uint32_t block[4], bits;
    FillBits32(draws.key, at, static_cast<std::uint32_t>(draw / 4),
               absl::MakeSpan(block));
    std::memcpy(&bits, from + i, sizeof(bits));
    bits += block[draw % 4] & 0xffff;
    to[i] = std::isnan(from[i]) ? bf16::FromFloat(from[i])
                                : bf16{static_cast<std::uint16_t>(bits >> 16)};
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(OptimizerKernels& ops) {
  ops.SetStepScalars.BindFunction(SetStepScalars, nullptr);
  ops.CountFrom.BindFunction(CountFrom, nullptr);
  ops.ApplyLossScale.BindFunction(ApplyLossScale, nullptr);
  ops.UpdateLossScale.BindFunction(UpdateLossScale, nullptr);
  BindFloating<SgdUpdate>(ops.SgdUpdate);
  BindFloating<AdamUpdate>(ops.AdamUpdate);
  BindFloating<LambDirection>(ops.LambDirection);
  BindFloating<LambUpdate>(ops.LambUpdate);
  BindFloating<LarsUpdate>(ops.LarsUpdate);
  BindFloating<AddSquares>(ops.AddSquares);
  ops.SetClipFactor.BindFunction(SetClipFactor, nullptr);
  BindFloating<ClipGradient>(ops.ClipGradient);
  BindFloating<EmaUpdate>(ops.EmaUpdate);
  ops.RoundAtRandom.BindFunction(RoundAtRandom, nullptr);
}

}  // namespace troupe::nn::reference
