// Rotary position embedding of one head. Letters: see nn/kernels/rotary.h.

#ifndef NN_KERNELS_CPU_ROTARY_LOOPS_H_
#define NN_KERNELS_CPU_ROTARY_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {
namespace {

// Rotates pairs i and i + pairs by the angles of these cosines and sines. y may
// be x.
inline void RotateHalves(Index pairs, const float* cosine, const float* sine,
                         const float* x, float* y) {
  ForEachVector(pairs, [=](auto load, auto store) {
    const Vec c = load(cosine), s = load(sine);
    const Vec a = load(x), b = load(x + pairs);
    store(y, Minus(Times(a, c), Times(b, s)));
    store(y + pairs, Plus(Times(b, c), Times(a, s)));
  });
}

// Rotates pairs 2 i and 2 i + 1.
inline void RotatePairs(Index pairs, const float* cosine, const float* sine,
                        const float* x, float* y) {
  for (Index i = 0; i < pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = a * cosine[i] - b * sine[i];
    y[2 * i + 1] = b * cosine[i] + a * sine[i];
  }
}

constexpr void SetRotaryLoops(Loops& loops) {
  loops.rotate_halves = RotateHalves;
  loops.rotate_pairs = RotatePairs;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_ROTARY_LOOPS_H_
