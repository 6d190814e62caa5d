// Loops over one row of softmax, forward and backward.

#ifndef NN_KERNELS_CPU_SOFTMAX_LOOPS_H_
#define NN_KERNELS_CPU_SOFTMAX_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/functions.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

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

// Returns the sum of a[i] b[i], or of a[i] if b is null, in segments.
inline double SumOfProducts(Index n, const float* a, const float* b) {
  constexpr Index kBlock = 64 * kLanes;  // summed in f32, then in f64
  double sum = 0;
  for (Index begin = 0; begin < n; begin += kBlock) {
    Vec partial = Zero();
    for (Index i = begin; i < Min(n, begin + kBlock); i += kLanes) {
      const Mask mask = First(n - i);
      const Vec v = LoadSome(a + i, mask);
      partial = b ? Fma(v, LoadSome(b + i, mask), partial) : Plus(partial, v);
    }
    sum += SumLanes(partial);
  }
  return sum;
}

inline void SoftmaxRow(Index n, const float* x, float* y) {
  const float largest = LargestOf(n, x);
  const double sum = ExpSum(n, x, largest, y);
  const Vec scale = Set(static_cast<float>(1.0 / sum));
  ForEachVector(
      n, [=](auto load, auto store) { store(y, Times(load(y), scale)); });
}

inline void LogSoftmaxRow(Index n, const float* x, float* y) {
  const float largest = LargestOf(n, x);
  const double sum = ExpSum(n, x, largest, /*d=*/nullptr);
  const Vec offset = Set(largest);
  const Vec log = Set(static_cast<float>(__builtin_log(sum)));
  ForEachVector(n, [=](auto load, auto store) {
    store(y, Minus(Minus(load(x), offset), log));
  });
}

inline void SoftmaxRowBackward(Index n, const float* y, const float* dy,
                               float* dx) {
  const Vec sum = Set(static_cast<float>(SumOfProducts(n, y, dy)));
  ForEachVector(n, [=](auto load, auto store) {
    store(dx, Times(load(y), Minus(load(dy), sum)));
  });
}

inline void LogSoftmaxRowBackward(Index n, const float* y, const float* dy,
                                  float* dx) {
  const Vec sum = Set(static_cast<float>(SumOfProducts(n, dy, /*b=*/nullptr)));
  ForEachVector(n, [=](auto load, auto store) {
    store(dx, Minus(load(dy), Times(Exp(load(y)), sum)));
  });
}

constexpr void SetSoftmaxLoops(Loops& loops) {
  loops.softmax_row = SoftmaxRow;
  loops.log_softmax_row = LogSoftmaxRow;
  loops.softmax_row_backward = SoftmaxRowBackward;
  loops.log_softmax_row_backward = LogSoftmaxRowBackward;
  loops.sum_of_products = SumOfProducts;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_SOFTMAX_LOOPS_H_
