// Loops of the optimizers.

#ifndef NN_KERNELS_CPU_OPTIMIZER_LOOPS_H_
#define NN_KERNELS_CPU_OPTIMIZER_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

inline void SgdPlain(Index n, const SgdScalars& step, const float* grad,
                     float* param) {
  const Vec scale = Set(step.inverse_divisor), lr = Set(-step.lr);
  ForEachVector(n, [=](auto load, auto store) {
    store(param, Fma(lr, Times(load(grad), scale), load(param)));
  });
}

inline void Sgd(Index n, const SgdScalars& step, const float* grad,
                float* param, float* momentum) {
  if (!momentum && step.weight_decay == 0.0f) {
    SgdPlain(n, step, grad, param);
    return;
  }
  const Vec scale = Set(step.inverse_divisor), lr = Set(-step.lr);
  const Vec decay = Set(step.weight_decay), mu = Set(step.momentum);
  const Vec undampened = Set(step.undampened);
  const bool decays = step.weight_decay != 0.0f;
  const bool first = step.first_step, nesterov = step.nesterov;
  ForEachVector(n, [=](auto load, auto store) {
    const Vec p = load(param);
    Vec g = Times(load(grad), scale);
    if (decays) g = Fma(decay, p, g);
    if (momentum) {
      const Vec buf = first ? g : Fma(mu, load(momentum), Times(undampened, g));
      store(momentum, buf);
      g = nesterov ? Fma(mu, buf, g) : buf;
    }
    store(param, Fma(lr, g, p));
  });
}

// Updates m and v of a vector by its gradients; the caller computes
// m / c1 / (sqrt(v / c2) + eps) from them.
template <typename Load, typename Store>
TROUPE_INLINE void UpdateMoments(const AdamScalars& step, Load load,
                                 Store store, Vec g, float* exp_avg,
                                 float* exp_avg_sq, Vec& m, Vec& v) {
  m = load(exp_avg);
  m = Fma(Set(step.one_minus_beta1), Minus(g, m), m);
  v = Fma(Times(Set(step.one_minus_beta2), g), g,
          Times(Set(step.beta2), load(exp_avg_sq)));
  store(exp_avg, m);
  store(exp_avg_sq, v);
}

TROUPE_INLINE Vec AdamDirection(const AdamScalars& step, Vec m, Vec v) {
  return Over(Times(Set(step.step_size), m),
              Fma(SquareRoot(v), Set(step.inverse_root2), Set(step.eps)));
}

inline void Adam(Index n, const AdamScalars& step, const float* grad,
                 float* param, float* exp_avg, float* exp_avg_sq,
                 float* max_exp_avg_sq) {
  const Vec scale = Set(step.inverse_divisor), decay = Set(step.weight_decay);
  const Vec shrink = Set(step.shrink);
  const bool decays = step.weight_decay != 0.0f;
  ForEachVector(n, [=](auto load, auto store) {
    Vec p = load(param), g = Times(load(grad), scale), m, v;
    if (decays) g = Fma(decay, p, g);
    UpdateMoments(step, load, store, g, exp_avg, exp_avg_sq, m, v);
    if (max_exp_avg_sq) {
      v = MaxOrSecond(load(max_exp_avg_sq), v);
      store(max_exp_avg_sq, v);
    }
    p = Times(p, shrink);
    store(param, Minus(p, AdamDirection(step, m, v)));
  });
}

inline void LambDirection(Index n, const AdamScalars& step, const float* grad,
                          const float* param, float* exp_avg, float* exp_avg_sq,
                          float* direction) {
  const Vec scale = Set(step.inverse_divisor), decay = Set(step.weight_decay);
  ForEachVector(n, [=](auto load, auto store) {
    Vec m, v;
    UpdateMoments(step, load, store, Times(load(grad), scale), exp_avg,
                  exp_avg_sq, m, v);
    store(direction, Fma(decay, load(param), AdamDirection(step, m, v)));
  });
}

inline void Lars(Index n, const LarsScalars& step, const float* grad,
                 float* param, float* momentum) {
  const Vec scale = Set(step.inverse_divisor), rate = Set(step.rate);
  const Vec decay = Set(step.weight_decay), mu = Set(step.momentum);
  ForEachVector(n, [=](auto load, auto store) {
    const Vec p = load(param);
    Vec change = Times(rate, Fma(decay, p, Times(load(grad), scale)));
    if (momentum) {
      change = Fma(mu, load(momentum), change);
      store(momentum, change);
    }
    store(param, Minus(p, change));
  });
}

inline void AddScaled(Index n, float factor, const float* x, float* y) {
  const Vec by = Set(factor);
  ForEachVector(
      n, [=](auto load, auto store) { store(y, Fma(by, load(x), load(y))); });
}

inline void MoveTowards(Index n, float factor, const float* x, float* y) {
  const Vec by = Set(factor);
  ForEachVector(n, [=](auto load, auto store) {
    const Vec old = load(y);
    store(y, Fma(by, Minus(load(x), old), old));
  });
}

inline void Clip(Index n, float limit, const float* x, float* y) {
  const Vec most = Set(limit), least = Set(-limit);
  ForEachVector(n, [=](auto load, auto store) {
    const Vec v = load(x);
    store(y,
          Choose(Greater(v, most), most, Choose(Greater(least, v), least, v)));
  });
}

inline double SumOfSquares(Index n, const float* x) {
  SquareSum sum;
  ForEachVector(n, [&](auto load, auto) { sum.Add(load(x)); });
  return sum.Total();
}

constexpr void SetOptimizerLoops(Loops& loops) {
  loops.sgd = Sgd;
  loops.adam = Adam;
  loops.lamb_direction = LambDirection;
  loops.lars = Lars;
  loops.add_scaled = AddScaled;
  loops.move_towards = MoveTowards;
  loops.clip = Clip;
  loops.square_sum = SumOfSquares;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_OPTIMIZER_LOOPS_H_
