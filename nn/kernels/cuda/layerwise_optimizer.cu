// Optimizers that need the norms of each parameter: LAMB and LARS. Numbers are
// rounded as in optimizer.cu.

#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/element_grid.h"
#include "nn/kernels/cuda/kernel_parts/elements.h"
#include "nn/kernels/cuda/kernel_parts/update_kernel.h"

namespace troupe::nn::cuda {
namespace {

// --- LAMB ---

template <typename T>
struct LambBody {
  using Step = Moments::Step;

  Moments rule;
  const T *grad, *param;
  T *exp_avg, *exp_avg_sq, *direction;

  __device__ __forceinline__ Step StepOf(const StepScalars& scalars) const {
    Step step;
    step.inverse_divisor = InverseDivisorOf(scalars);
    step.inverse_root2 = static_cast<float>(1 / sqrt(scalars.bias_correction2));
    step.step_size = static_cast<float>(1 / scalars.bias_correction1);
    step.weight_decay = static_cast<float>(rule.weight_decay);
    step.shrink = 1;
    return step;
  }

  template <int kCount>
  __device__ void At(const Step& step, std::int64_t i) const {
    const Numbers<float, kCount> g = Load<kCount>(grad + i);
    const Numbers<float, kCount> p = Load<kCount>(param + i);
    Numbers<float, kCount> m = Load<kCount>(exp_avg + i);
    Numbers<float, kCount> v = Load<kCount>(exp_avg_sq + i);
    Numbers<float, kCount> to;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      rule.Update(step, __fmul_rn(g.at[k], step.inverse_divisor), m.at[k],
                  v.at[k]);
      to.at[k] = __fadd_rn(rule.Direction(step, m.at[k], v.at[k]),
                           __fmul_rn(step.weight_decay, p.at[k]));
    }
    Store(m, exp_avg + i);
    Store(v, exp_avg_sq + i);
    Store(to, direction + i);
  }
};

struct LambDirection {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const AdamRule& rule, In scalars,
                          In grad, In param, Tensor& exp_avg,
                          Tensor& exp_avg_sq, Tensor& direction) {
    if (param.numel() == 0) return absl::OkStatus();
    const LambBody<T> body{MomentsOf(rule),     Data<T>(grad),
                           Data<T>(param),      Data<T>(exp_avg),
                           Data<T>(exp_avg_sq), Data<T>(direction)};
    const bool aligned = IsAligned(body.grad) && IsAligned(body.param) &&
                         IsAligned(body.exp_avg) &&
                         IsAligned(body.exp_avg_sq) &&
                         IsAligned(body.direction);
    return LaunchUpdate<T>("LambDirection", cuda, param.numel(), scalars,
                           aligned, body);
  }
};

template <typename T>
struct LambStepBody {
  struct Step {
    float rate;
  };

  double lr_factor;
  const double* squares;
  const T* direction;
  T* param;

  __device__ __forceinline__ Step StepOf(const StepScalars& scalars) const {
    const bool known = squares[0] > 0 && squares[1] > 0;
    const double trust = known ? sqrt(squares[0] / squares[1]) : 1;
    return {static_cast<float>(scalars.lr * lr_factor * trust)};
  }

  template <int kCount>
  __device__ void At(const Step& step, std::int64_t i) const {
    const Numbers<float, kCount> along = Load<kCount>(direction + i);
    Numbers<float, kCount> p = Load<kCount>(param + i);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      p.at[k] = __fsub_rn(p.at[k], __fmul_rn(step.rate, along.at[k]));
    }
    Store(p, param + i);
  }
};

struct LambUpdate {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, double lr_factor, In scalars,
                          In squares, In direction, Tensor& param) {
    if (param.numel() == 0) return absl::OkStatus();
    const LambStepBody<T> body{lr_factor, Data<double>(squares),
                               Data<T>(direction), Data<T>(param)};
    return LaunchUpdate<T>("LambUpdate", cuda, param.numel(), scalars,
                           IsAligned(body.direction) && IsAligned(body.param),
                           body);
  }
};

// --- LARS ---

template <typename T, bool kMomentum>
struct LarsBody {
  struct Step {
    float inverse_divisor, rate;
  };

  LarsRule rule;
  float weight_decay, mu;
  const double* squares;
  const T* grad;
  T *param, *momentum;

  __device__ __forceinline__ Step StepOf(const StepScalars& scalars) const {
    const double mean = MeanFactorOf(scalars);
    const double of_param = sqrt(squares[0]);
    const double of_grad = sqrt(squares[1]) * mean;
    const bool adapts = of_param > 0 && of_grad > 0;
    const double trust =
        adapts ? rule.trust_coefficient * of_param /
                     (of_grad + rule.weight_decay * of_param + rule.eps)
               : 1;
    return {static_cast<float>(mean),
            static_cast<float>(scalars.lr * rule.lr_factor * trust)};
  }

  template <int kCount>
  __device__ void At(const Step& step, std::int64_t i) const {
    const Numbers<float, kCount> g = Load<kCount>(grad + i);
    Numbers<float, kCount> p = Load<kCount>(param + i);
    Numbers<float, kCount> buf{};
    if constexpr (kMomentum) buf = Load<kCount>(momentum + i);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const float decayed = __fadd_rn(__fmul_rn(g.at[k], step.inverse_divisor),
                                      __fmul_rn(weight_decay, p.at[k]));
      float change = __fmul_rn(step.rate, decayed);
      if constexpr (kMomentum) {
        change = __fadd_rn(__fmul_rn(mu, buf.at[k]), change);
        buf.at[k] = change;
      }
      p.at[k] = __fsub_rn(p.at[k], change);
    }
    if constexpr (kMomentum) Store(buf, momentum + i);
    Store(p, param + i);
  }
};

struct LarsUpdate {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, const LarsRule& rule, In scalars,
                          In squares, In grad, Tensor& param,
                          Tensor& momentum) {
    if (param.numel() == 0) return absl::OkStatus();
    const auto launch = [&](auto body) {
      body.rule = rule;
      body.weight_decay = static_cast<float>(rule.weight_decay);
      body.mu = static_cast<float>(rule.momentum);
      body.squares = Data<double>(squares);
      body.grad = Data<T>(grad);
      body.param = Data<T>(param);
      body.momentum = rule.momentum != 0 ? Data<T>(momentum) : nullptr;
      return LaunchUpdate<T>("LarsUpdate", cuda, param.numel(), scalars,
                             IsAligned(body.grad) && IsAligned(body.param) &&
                                 IsAligned(body.momentum),
                             body);
    };
    return rule.momentum != 0 ? launch(LarsBody<T, true>())
                              : launch(LarsBody<T, false>());
  }
};

}  // namespace

void BindLayerwiseOptimizers(OptimizerKernels& ops, CudaOps* state) {
  BindFloating<LambDirection>(ops.LambDirection, state);
  BindFloating<LambUpdate>(ops.LambUpdate, state);
  BindFloating<LarsUpdate>(ops.LarsUpdate, state);
}

}  // namespace troupe::nn::cuda
