// Loops of the losses.

#ifndef NN_KERNELS_CPU_LOSS_LOOPS_H_
#define NN_KERNELS_CPU_LOSS_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

inline double SquaredError(Index n, const float* prediction,
                           const float* target, float* d) {
  SquareSum sum;
  ForEachVector(n, [&](auto load, auto store) {
    const Vec error = Minus(load(prediction), load(target));
    sum.Add(error);
    if (d) store(d, Plus(error, error));
  });
  return sum.Total();
}

// e^x for x <= 0, 0 below -87: r = x - n ln 2 with n the nearest integer, a
// polynomial in r (Cephes expf, 1 ulp), times 2^n. NaN stays NaN.
TROUPE_INLINE Vec ExpOfNegative(Vec x) {
  const Vec shift = Set(12582912.0f);  // 1.5 * 2^23: adding it rounds
  const Vec least = Set(-87.0f);
  const Vec shifted = Fma(MaxOrSecond(least, x), Set(1.44269504f), shift);
  const Vec n = Minus(shifted, shift);
  Vec r = Fma(n, Set(-0.693359375f), MaxOrSecond(least, x));
  r = Fma(n, Set(2.12194440e-4f), r);
  Vec y = Set(1.9875691500e-4f);
  y = Fma(y, r, Set(1.3981999507e-3f));
  y = Fma(y, r, Set(8.3334519073e-3f));
  y = Fma(y, r, Set(4.1665795894e-2f));
  y = Fma(y, r, Set(1.6666665459e-1f));
  y = Fma(y, r, Set(5.0000001201e-1f));
  y = Fma(y, Times(r, r), Plus(r, Set(1.0f)));
  y = Times(y, PowerOfTwo(shifted));
  return Choose(GreaterOrNan(x, least), y, Zero());
}

inline float LargestOf(Index n, const float* x) {
  Vec largest = Set(x[0]);
  for (Index i = 0; i < n; i += kLanes) {
    const Mask mask = First(n - i);
    largest =
        MaxOrSecond(largest, KeepSome(LoadSome(x + i, mask), mask, largest));
  }
  return MaxLanes(largest);
}

// d[n] = e^(x - offset), unless d is null; returns the sum.
inline double ExpSum(Index n, const float* x, float offset, float* d) {
  constexpr Index kBlock = 64 * kLanes;  // summed in f32, then in f64
  double sum = 0;
  for (Index begin = 0; begin < n; begin += kBlock) {
    Vec partial = Zero();
    for (Index i = begin; i < Min(n, begin + kBlock); i += kLanes) {
      const Mask mask = First(n - i);
      const Vec e = ExpOfNegative(Minus(LoadSome(x + i, mask), Set(offset)));
      if (d) StoreSome(d + i, e, mask);
      partial = Plus(partial, KeepSome(e, mask, Zero()));
    }
    sum += SumLanes(partial);
  }
  return sum;
}

// The largest logit is the target, and none before it is as large.
inline bool IsFirstLargest(const float* x, Index target, float largest) {
  if (x[target] != largest) return false;
  for (Index i = 0; i < target; ++i) {
    if (x[i] == largest) return false;
  }
  return true;
}

inline double CrossEntropyRow(Index classes, const float* logits, Index target,
                              float* d, bool* hit) {
  const float largest = LargestOf(classes, logits);
  *hit = IsFirstLargest(logits, target, largest);
  const double sum = ExpSum(classes, logits, largest, d);
  if (d) {
    const Vec scale = Set(static_cast<float>(1.0 / sum));
    ForEachVector(classes, [=](auto load, auto store) {
      store(d, Times(load(d), scale));
    });
    d[target] -= 1.0f;
  }
  return __builtin_log(sum) + (static_cast<double>(largest) - logits[target]);
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_LOSS_LOOPS_H_
