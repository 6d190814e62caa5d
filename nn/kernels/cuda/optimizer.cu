#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/update_kernel.h"

// Rounding is part of the contract of updates: each product and sum of a rule's
// formula is rounded to f32 separately, without a fused multiply-add, and the
// scalars are rounded to f32 once. f32 parameters therefore equal those of a
// plain loop on the CPU compiled with -ffp-contract=off, bit for bit, wherever
// a range begins. 16-bit parameters and buffers are also computed in f32, and
// rounded when they are stored.

namespace troupe::nn::cuda {
namespace {

// An SgdRule in the precision of the kernel.
struct Rule {
  double lr_factor;
  float weight_decay;
  float momentum;
  float undampened;  // 1 - dampening
};

Rule RoundedOnce(const SgdRule& rule) {
  Rule rounded;
  rounded.lr_factor = rule.lr_factor;
  rounded.weight_decay = static_cast<float>(rule.weight_decay);
  rounded.momentum = static_cast<float>(rule.momentum);
  rounded.undampened = static_cast<float>(1.0 - rule.dampening);
  return rounded;
}

// __fmul_rn and __fadd_rn are never contracted into a fused multiply-add.
template <typename T, bool kMomentum, bool kNesterov, bool kWeightDecay>
struct SgdBody {
  // Numbers that an update derives from the step's scalars.
  struct Step {
    float inverse_divisor;
    float minus_lr;
    bool first;
  };

  Rule rule;
  const T* grad;
  T* param;
  T* momentum;

  __device__ __forceinline__ Step StepOf(const StepScalars& scalars) const {
    Step step;
    step.inverse_divisor = InverseDivisorOf(scalars);
    step.minus_lr = static_cast<float>(-(scalars.lr * rule.lr_factor));
    step.first = scalars.step == 0;
    return step;
  }

  template <int kCount>
  __device__ void At(const Step& step, std::int64_t i) const {
    const Numbers<float, kCount> g = Load<kCount>(grad + i);
    Numbers<float, kCount> p = Load<kCount>(param + i);
    Numbers<float, kCount> buf{};
    if constexpr (kMomentum) {
      if (!step.first) buf = Load<kCount>(momentum + i);
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      Update(step, g.at[k], buf.at[k], p.at[k]);
    }
    if constexpr (kMomentum) Store(buf, momentum + i);
    Store(p, param + i);
  }

  __device__ __forceinline__ void Update(const Step& step, float grad,
                                         float& buf, float& p) const {
    float g = __fmul_rn(grad, step.inverse_divisor);
    if constexpr (kWeightDecay) {
      g = __fadd_rn(g, __fmul_rn(rule.weight_decay, p));
    }
    if constexpr (kMomentum) {
      buf = step.first ? g
                       : __fadd_rn(__fmul_rn(rule.momentum, buf),
                                   __fmul_rn(rule.undampened, g));
      g = kNesterov ? __fadd_rn(g, __fmul_rn(rule.momentum, buf)) : buf;
    }
    p = __fadd_rn(p, __fmul_rn(step.minus_lr, g));
  }
};

// The operands of one update.
struct SgdCall {
  const CudaOps& cuda;
  const SgdRule& rule;
  const Tensor& scalars;
  const Tensor& grad;
  const Tensor& param;
  const Tensor& momentum;
};

template <typename T, bool kMomentum, bool kNesterov, bool kWeightDecay>
absl::Status LaunchSgd(const SgdCall& call) {
  using Body = SgdBody<T, kMomentum, kNesterov, kWeightDecay>;
  const Body body{RoundedOnce(call.rule), Data<T>(call.grad),
                  Data<T>(call.param),
                  kMomentum ? Data<T>(call.momentum) : nullptr};
  const bool aligned =
      IsAligned(body.grad) && IsAligned(body.param) && IsAligned(body.momentum);
  return LaunchUpdate<T>("SgdUpdate", call.cuda, call.param.numel(),
                         call.scalars, aligned, body);
}

template <typename T, bool kMomentum, bool kNesterov>
absl::Status ChooseWeightDecay(const SgdCall& call) {
  return call.rule.weight_decay == 0
             ? LaunchSgd<T, kMomentum, kNesterov, false>(call)
             : LaunchSgd<T, kMomentum, kNesterov, true>(call);
}

struct SgdUpdate {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const SgdRule& rule, In scalars,
                          In grad, Tensor& param, Tensor& momentum) {
    if (param.numel() == 0) return absl::OkStatus();
    const SgdCall call{cuda, rule, scalars, grad, param, momentum};
    if (rule.momentum == 0) return ChooseWeightDecay<T, false, false>(call);
    if (!momentum.defined()) {
      return absl::InvalidArgumentError(
          "SgdUpdate: a rule with momentum needs its buffer");
    }
    return rule.nesterov ? ChooseWeightDecay<T, true, true>(call)
                         : ChooseWeightDecay<T, true, false>(call);
  }
};

// --- Adam ---

template <typename T, bool kDecoupled, bool kAmsgrad>
struct AdamBody {
  using Step = Moments::Step;

  Moments rule;
  const T* grad;
  T *param, *exp_avg, *exp_avg_sq, *largest;

  __device__ __forceinline__ Step StepOf(const StepScalars& scalars) const {
    const double lr = scalars.lr * rule.lr_factor;
    Step step;
    step.inverse_divisor = InverseDivisorOf(scalars);
    step.inverse_root2 = static_cast<float>(1 / sqrt(scalars.bias_correction2));
    step.step_size = static_cast<float>(lr / scalars.bias_correction1);
    step.weight_decay = kDecoupled ? 0 : static_cast<float>(rule.weight_decay);
    step.shrink =
        kDecoupled ? static_cast<float>(1 - lr * rule.weight_decay) : 1;
    return step;
  }

  template <int kCount>
  __device__ void At(const Step& step, std::int64_t i) const {
    const Numbers<float, kCount> g = Load<kCount>(grad + i);
    Numbers<float, kCount> p = Load<kCount>(param + i);
    Numbers<float, kCount> m = Load<kCount>(exp_avg + i);
    Numbers<float, kCount> v = Load<kCount>(exp_avg_sq + i);
    Numbers<float, kCount> most{};
    if constexpr (kAmsgrad) most = Load<kCount>(largest + i);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      Update(step, g.at[k], p.at[k], m.at[k], v.at[k], most.at[k]);
    }
    Store(m, exp_avg + i);
    Store(v, exp_avg_sq + i);
    if constexpr (kAmsgrad) Store(most, largest + i);
    Store(p, param + i);
  }

  __device__ __forceinline__ void Update(const Step& step, float grad, float& p,
                                         float& m, float& v,
                                         float& most) const {
    float g = __fmul_rn(grad, step.inverse_divisor);
    if constexpr (kDecoupled) {
      p = __fmul_rn(p, step.shrink);
    } else if (step.weight_decay != 0) {
      g = __fadd_rn(g, __fmul_rn(step.weight_decay, p));
    }
    rule.Update(step, g, m, v);
    if constexpr (kAmsgrad) most = most > v ? most : v;
    p = __fsub_rn(p, rule.Direction(step, m, kAmsgrad ? most : v));
  }
};

// The operands of one update.
struct AdamCall {
  const CudaOps& cuda;
  const AdamRule& rule;
  const Tensor& scalars;
  const Tensor& grad;
  const Tensor& param;
  const Tensor& exp_avg;
  const Tensor& exp_avg_sq;
  const Tensor& largest;
};

template <typename T, bool kDecoupled, bool kAmsgrad>
absl::Status LaunchAdam(const AdamCall& call) {
  const AdamBody<T, kDecoupled, kAmsgrad> body{
      MomentsOf(call.rule),     Data<T>(call.grad),
      Data<T>(call.param),      Data<T>(call.exp_avg),
      Data<T>(call.exp_avg_sq), kAmsgrad ? Data<T>(call.largest) : nullptr};
  const bool aligned = IsAligned(body.grad) && IsAligned(body.param) &&
                       IsAligned(body.exp_avg) && IsAligned(body.exp_avg_sq) &&
                       IsAligned(body.largest);
  return LaunchUpdate<T>("AdamUpdate", call.cuda, call.param.numel(),
                         call.scalars, aligned, body);
}

struct AdamUpdate {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const AdamRule& rule, In scalars,
                          In grad, Tensor& param, Tensor& exp_avg,
                          Tensor& exp_avg_sq, Tensor& max_exp_avg_sq) {
    if (param.numel() == 0) return absl::OkStatus();
    const AdamCall call{cuda,  rule,    scalars,    grad,
                        param, exp_avg, exp_avg_sq, max_exp_avg_sq};
    if (rule.amsgrad) {
      return rule.decoupled ? LaunchAdam<T, true, true>(call)
                            : LaunchAdam<T, false, true>(call);
    }
    return rule.decoupled ? LaunchAdam<T, true, false>(call)
                          : LaunchAdam<T, false, false>(call);
  }
};

__global__ void SetScalarsKernel(StepScalars values, StepScalars* scalars) {
  *scalars = values;
}

absl::Status SetStepScalars(const CudaOps& cuda, const StepScalars& values,
                            Tensor& scalars) {
  return base::Launch("SetStepScalars", SetScalarsKernel, base::LaunchShape(),
                      cuda.stream, values,
                      reinterpret_cast<StepScalars*>(Data<double>(scalars)));
}

// Computes StepScalars::CountFrom() on the device.
__device__ void CountStepsFrom(double first, StepScalars& scalars) {
  const double step = scalars.step - first;
  scalars.step = step;
  scalars.bias_correction1 = 1 - pow(scalars.beta1, step + 1);
  scalars.bias_correction2 = 1 - pow(scalars.beta2, step + 1);
}

__global__ void CountFromKernel(double first, const StepScalars* scalars,
                                StepScalars* counted) {
  StepScalars values = *scalars;
  CountStepsFrom(first, values);
  *counted = values;
}

absl::Status CountFrom(const CudaOps& cuda, double first, In scalars,
                       Tensor& counted) {
  return base::Launch("CountFrom", CountFromKernel, base::LaunchShape(),
                      cuda.stream, first, ScalarsOn(scalars),
                      reinterpret_cast<StepScalars*>(Data<double>(counted)));
}

// Computes LossScaleState::ApplyTo() on the device.
__global__ void ApplyScaleKernel(const LossScaleState* state,
                                 StepScalars* scalars) {
  scalars->loss_scale = state->scale;
  if (state->skipped_steps == 0) return;
  CountStepsFrom(state->skipped_steps, *scalars);
}

absl::Status ApplyLossScale(const CudaOps& cuda, In state, Tensor& scalars) {
  return base::Launch(
      "ApplyLossScale", ApplyScaleKernel, base::LaunchShape(), cuda.stream,
      reinterpret_cast<const LossScaleState*>(Data<double>(state)),
      reinterpret_cast<StepScalars*>(Data<double>(scalars)));
}

// Computes LossScaleState::Update() on the device.
__global__ void UpdateScaleKernel(double growth_interval, double backoff,
                                  const StepScalars* scalars,
                                  LossScaleState* state) {
  if (scalars->non_finite != 0) {
    state->scale *= backoff;
    state->finite_steps = 0;
    state->skipped_steps += 1;
    return;
  }
  state->finite_steps += 1;
  if (state->finite_steps < growth_interval) return;
  state->finite_steps = 0;
  const double larger = state->scale * kLossScaleGrowth;
  if (larger <= kLossScaleMax) state->scale = larger;
}

absl::Status UpdateLossScale(const CudaOps& cuda, const LossScaleRule& rule,
                             In scalars, Tensor& state) {
  return base::Launch("UpdateLossScale", UpdateScaleKernel, base::LaunchShape(),
                      cuda.stream, static_cast<double>(rule.growth_interval),
                      rule.backoff, ScalarsOn(scalars),
                      reinterpret_cast<LossScaleState*>(Data<double>(state)));
}

}  // namespace

template <>
void BindFamily(OptimizerKernels& ops, CudaOps* state) {
  ops.SetStepScalars.Bind<SetStepScalars>(state);
  ops.CountFrom.Bind<CountFrom>(state);
  ops.ApplyLossScale.Bind<ApplyLossScale>(state);
  ops.UpdateLossScale.Bind<UpdateLossScale>(state);
  BindFloating<SgdUpdate>(ops.SgdUpdate, state);
  BindFloating<AdamUpdate>(ops.AdamUpdate, state);
  BindLayerwiseOptimizers(ops, state);
  BindClipping(ops, state);
}

}  // namespace troupe::nn::cuda
