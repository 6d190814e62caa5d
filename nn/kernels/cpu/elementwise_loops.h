// Element-wise loops. An element's bits depend on its operands alone: tails are
// masked vectors of the same instructions.

#ifndef NN_KERNELS_CPU_ELEMENTWISE_LOOPS_H_
#define NN_KERNELS_CPU_ELEMENTWISE_LOOPS_H_

#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

// Calls body(load, store) for each vector of n elements; load(p) and store(p,
// v) access only its elements of p.
template <typename Body>
TROUPE_INLINE void ForEachVector(Index n, Body body) {
  Index i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    body([i](const float* p) { return Load(p + i); },
         [i](float* p, Vec v) { Store(p + i, v); });
  }
  if (i < n) {
    const Mask mask = First(n - i);
    body([i, mask](const float* p) { return LoadSome(p + i, mask); },
         [i, mask](float* p, Vec v) { StoreSome(p + i, v, mask); });
  }
}

inline void ReluForward(Index n, const float* x, float* y) {
  ForEachVector(n, [=](auto load, auto store) {
    store(y, MaxOrSecond(Zero(), load(x)));
  });
}

inline void ReluBackward(Index n, const float* y, const float* dy, float* dx) {
  ForEachVector(n, [=](auto load, auto store) {
    store(dx, WherePositiveOrNan(load(y), load(dy)));
  });
}

inline void Scale(Index n, float factor, const float* x, float* y) {
  const Vec by = Set(factor);
  ForEachVector(n,
                [=](auto load, auto store) { store(y, Times(load(x), by)); });
}

inline void Add(Index n, const float* a, const float* b, float* y) {
  ForEachVector(
      n, [=](auto load, auto store) { store(y, Plus(load(a), load(b))); });
}

inline void Fill(Index n, float value, float* y) {
  const Vec v = Set(value);
  ForEachVector(n, [=](auto, auto store) { store(y, v); });
}

constexpr void SetElementwiseLoops(Loops& loops) {
  loops.relu_forward = ReluForward;
  loops.relu_backward = ReluBackward;
  loops.scale = Scale;
  loops.add = Add;
  loops.fill = Fill;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_ELEMENTWISE_LOOPS_H_
