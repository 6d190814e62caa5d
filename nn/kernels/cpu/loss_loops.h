// Loops of the losses.

#ifndef NN_KERNELS_CPU_LOSS_LOOPS_H_
#define NN_KERNELS_CPU_LOSS_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"
#include "nn/kernels/cpu/softmax_loops.h"

namespace troupe::nn::cpu {
namespace {

// The losses of pairs are not inlined into PairLoss(): the compiler then makes
// a loop of its own for a null `d`.

__attribute__((noinline)) double SquaredError(Index n, const float* prediction,
                                              const float* target, float* d) {
  SquareSum sum;
  ForEachVector(n, [&](auto load, auto store) {
    const Vec error = Minus(load(prediction), load(target));
    sum.Add(error);
    if (d) store(d, Plus(error, error));
  });
  return sum.Total();
}

// Whether the largest logit is the target, and none before it is as large.
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
  const float own = logits[target];  // before d, which may be the logits
  const double sum = ExpSum(classes, logits, largest, d);
  if (d) {
    const Vec scale = Set(static_cast<float>(1.0 / sum));
    ForEachVector(classes, [=](auto load, auto store) {
      store(d, Times(load(d), scale));
    });
    d[target] -= 1.0f;
  }
  return __builtin_log(sum) + (static_cast<double>(largest) - own);
}

// Returns the sum of body(load, store), a vector, over n elements: in f32 over
// a block, then in f64.
template <typename Body>
TROUPE_INLINE double SumInBlocks(Index n, Body body) {
  constexpr Index kBlock = 64 * kLanes;
  double sum = 0;
  for (Index begin = 0; begin < n; begin += kBlock) {
    Vec partial = Zero();
    for (Index i = begin; i < Min(n, begin + kBlock); i += kLanes) {
      const Mask mask = First(n - i);
      const Vec v = body(
          [i, mask](const float* p) { return LoadSome(p + i, mask); },
          [i, mask](float* p, Vec value) { StoreSome(p + i, value, mask); });
      partial = Plus(partial, KeepSome(v, mask, Zero()));
    }
    sum += SumLanes(partial);
  }
  return sum;
}

inline double WeightedCrossEntropyRow(Index classes, const float* logits,
                                      Index target, const float* weights,
                                      double smoothing, float* d, bool* hit) {
  const float largest = LargestOf(classes, logits);
  *hit = IsFirstLargest(logits, target, largest);
  const double own = (1 - smoothing) * (weights ? weights[target] : 1);
  const double share = smoothing / static_cast<double>(classes);
  // Reads all logits before d is written, which may share their memory.
  const double below = static_cast<double>(largest) - logits[target];
  double weight = 0, weighted = 0;
  if (share != 0) {
    const Vec one = Set(1.0f), offset = Set(largest);
    weight = SumInBlocks(classes, [=](auto load, auto) {
      return weights ? load(weights) : one;
    });
    weighted = SumInBlocks(classes, [=](auto load, auto) {
      const Vec x = Minus(load(logits), offset);
      return weights ? Times(load(weights), x) : x;
    });
  }
  const double sum = ExpSum(classes, logits, largest, d);
  const double log_sum = __builtin_log(sum);
  double loss = own * (log_sum + below);
  double all = own;
  if (share != 0) {
    loss += share * (weight * log_sum - weighted);
    all += share * weight;
  }
  if (!d) return loss;
  const Vec scale = Set(static_cast<float>(all / sum));
  const Vec minus = Set(static_cast<float>(-share));
  ForEachVector(classes, [=](auto load, auto store) {
    const Vec scaled = Times(load(d), scale);
    store(d, weights ? Fma(minus, load(weights), scaled) : Plus(scaled, minus));
  });
  d[target] -= static_cast<float>(own);
  return loss;
}

inline double ExpSumOf(Index n, const float* x, float offset) {
  return ExpSum(n, x, offset, /*d=*/nullptr);
}

inline double OffsetSum(Index n, const float* x, float offset, const float* w) {
  const Vec from = Set(offset);
  return SumInBlocks(n, [=](auto load, auto) {
    const Vec above = Minus(load(x), from);
    return w ? Times(load(w), above) : above;
  });
}

inline void SoftmaxGradient(Index n, const float* x, float offset, float scale,
                            float share, const float* w, float* d) {
  ExpSum(n, x, offset, d);
  const Vec by = Set(scale), minus = Set(-share);
  ForEachVector(n, [=](auto load, auto store) {
    const Vec scaled = Times(load(d), by);
    store(d, w ? Fma(minus, load(w), scaled) : Plus(scaled, minus));
  });
}

TROUPE_INLINE Vec Abs(Vec v) { return MaxOrSecond(v, Minus(Zero(), v)); }

__attribute__((noinline)) double AbsoluteError(Index n, const float* prediction,
                                               const float* target, float* d) {
  const Vec one = Set(1.0f), minus_one = Set(-1.0f);
  return SumInBlocks(n, [=](auto load, auto store) {
    const Vec e = Minus(load(prediction), load(target));
    if (d) {
      store(d, Choose(Greater(e, Zero()), one,
                      Choose(Greater(Zero(), e), minus_one, Times(e, Zero()))));
    }
    return Abs(e);
  });
}

// With c = e, limited to [-delta, delta], both parts are c (e - c / 2).
__attribute__((noinline)) double Huber(Index n, float delta, float scale,
                                       const float* prediction,
                                       const float* target, float* d) {
  const Vec most = Set(delta), least = Set(-delta), by = Set(scale);
  const Vec half = Set(0.5f);
  return SumInBlocks(n, [=](auto load, auto store) {
    const Vec e = Minus(load(prediction), load(target));
    const Vec c =
        Choose(Greater(e, most), most, Choose(Greater(least, e), least, e));
    const Vec slope = Times(by, c);
    if (d) store(d, slope);
    return Times(slope, Minus(e, Times(half, c)));
  });
}

// Returns log(1 + y) for y from 0 to 1: twice the series of atanh(z),
// z = y / (2 + y), whose first omitted term is below 2^-26 of the sum.
TROUPE_INLINE Vec LogOfOnePlus(Vec y) {
  const Vec z = Over(y, Plus(Set(2.0f), y));
  const Vec square = Times(z, z);
  Vec sum = Set(2.0f / 15);
  sum = Fma(sum, square, Set(2.0f / 13));
  sum = Fma(sum, square, Set(2.0f / 11));
  sum = Fma(sum, square, Set(2.0f / 9));
  sum = Fma(sum, square, Set(2.0f / 7));
  sum = Fma(sum, square, Set(2.0f / 5));
  sum = Fma(sum, square, Set(2.0f / 3));
  sum = Fma(sum, square, Set(2.0f));
  return Times(sum, z);
}

__attribute__((noinline)) double BceWithLogits(Index n, float pos_weight,
                                               const float* logits,
                                               const float* target, float* d) {
  const Vec one = Set(1.0f), extra = Set(pos_weight - 1.0f);
  return SumInBlocks(n, [=](auto load, auto store) {
    const Vec x = load(logits), t = load(target);
    const Vec minus_x = Minus(Zero(), x), negative = Minus(one, t);
    const Vec weight = Fma(extra, t, one);
    const Vec decay = ExpOfNegative(Minus(Zero(), Abs(x)));
    if (d) {
      const Vec sigmoid =  // sigmoid(-x)
          Over(Choose(Greater(Zero(), x), one, decay), Plus(one, decay));
      store(d, Minus(negative, Times(weight, sigmoid)));
    }
    const Vec softplus =
        Plus(MaxOrSecond(Zero(), minus_x), LogOfOnePlus(decay));
    return Fma(negative, x, Times(weight, softplus));
  });
}

inline double PairLoss(const PairLossRule& rule, Index n,
                       const float* prediction, const float* target, float* d) {
  const auto p = static_cast<float>(rule.p), q = static_cast<float>(rule.q);
  switch (rule.function) {
    case PairLossFunction::kSquaredError:
      return SquaredError(n, prediction, target, d);
    case PairLossFunction::kAbsoluteError:
      return AbsoluteError(n, prediction, target, d);
    case PairLossFunction::kHuber:
      return Huber(n, /*delta=*/p, /*scale=*/q, prediction, target, d);
    case PairLossFunction::kBceWithLogits:
      return BceWithLogits(n, /*pos_weight=*/p, prediction, target, d);
  }
  return __builtin_nan("");
}

constexpr void SetLossLoops(Loops& loops) {
  loops.cross_entropy_row = CrossEntropyRow;
  loops.weighted_cross_entropy_row = WeightedCrossEntropyRow;
  loops.largest_of = LargestOf;
  loops.exp_sum = ExpSumOf;
  loops.offset_sum = OffsetSum;
  loops.softmax_gradient = SoftmaxGradient;
  loops.pair_loss = PairLoss;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_LOSS_LOOPS_H_
