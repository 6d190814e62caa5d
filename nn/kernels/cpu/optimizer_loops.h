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

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_OPTIMIZER_LOOPS_H_
