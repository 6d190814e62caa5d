#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/cuda_ops.h"
#include "nn/kernels/cuda/dispatch.h"
#include "nn/kernels/cuda/element_grid.h"
#include "nn/kernels/cuda/elements.h"

// Rounding is part of the contract of updates: each product and sum of
// SgdRule's formula is rounded to f32 on its own, with no fused multiply-add,
// and the scalars are rounded to f32 once. So f32 parameters equal those of a
// plain loop on the CPU compiled with -ffp-contract=off, bit for bit, wherever
// a range begins. 16-bit parameters and buffers are computed in f32, too, and
// rounded when they are stored.

namespace troupe::nn::cuda {
namespace {

// SgdRule in the precision of the kernel.
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

// The step's scalars as an update uses them.
struct Step {
  float inverse_divisor;
  float minus_lr;
  bool first;
};

__device__ __forceinline__ Step StepOf(const StepScalars& scalars,
                                       const Rule& rule) {
  const double divisor = scalars.loss_count * scalars.loss_scale;
  Step step;
  step.inverse_divisor =
      scalars.loss_count == 0 ? 0 : static_cast<float>(1 / divisor);
  step.minus_lr = static_cast<float>(-(scalars.lr * rule.lr_factor));
  step.first = scalars.step == 0;
  return step;
}

// __fmul_rn and __fadd_rn are never contracted into a fused multiply-add.
template <typename T, bool kMomentum, bool kNesterov, bool kWeightDecay>
struct SgdBody {
  Rule rule;
  const StepScalars* scalars;
  const T* grad;
  T* param;
  T* momentum;

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

// The scalars are read once by each thread, not for every vector: they hold a
// division in f64.
template <int kVector, typename Body>
__global__ void __launch_bounds__(kElementThreads)
    SgdKernel(std::int64_t count, Body body) {
  if (body.scalars->non_finite != 0) return;
  const Step step = StepOf(*body.scalars, body.rule);
  const std::int64_t vectors = count / kVector;
  for (std::int64_t v = ThreadOfGrid(); v < vectors; v += ThreadsOfGrid()) {
    body.template At<kVector>(step, v * kVector);
  }
  if constexpr (kVector > 1) {
    const std::int64_t i = vectors * kVector + ThreadOfGrid();
    if (i < count) body.template At<1>(step, i);
  }
}

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
  const Body body{
      RoundedOnce(call.rule),
      reinterpret_cast<const StepScalars*>(Data<double>(call.scalars)),
      Data<T>(call.grad), Data<T>(call.param),
      kMomentum ? Data<T>(call.momentum) : nullptr};
  const bool aligned =
      IsAligned(body.grad) && IsAligned(body.param) && IsAligned(body.momentum);
  const std::int64_t count = call.param.numel();
  constexpr int kVector = kVectorOf<T>;
  return base::Launch(
      "SgdUpdate", aligned ? SgdKernel<kVector, Body> : SgdKernel<1, Body>,
      GridOf(aligned ? count / kVector : count), call.cuda.stream, count, body);
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

__global__ void SetScalarsKernel(StepScalars values, StepScalars* scalars) {
  *scalars = values;
}

absl::Status SetStepScalars(const CudaOps& cuda, const StepScalars& values,
                            Tensor& scalars) {
  return base::Launch("SetStepScalars", SetScalarsKernel, base::LaunchShape(),
                      cuda.stream, values,
                      reinterpret_cast<StepScalars*>(Data<double>(scalars)));
}

}  // namespace

void BindOptimizer(OptimizerKernels& ops, CudaOps* state) {
  ops.SetStepScalars.Bind<SetStepScalars>(state);
  BindFloating<SgdUpdate>(ops.SgdUpdate, state);
}

}  // namespace troupe::nn::cuda
