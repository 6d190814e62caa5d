// Loops of norms whose groups are whole rows: layer norm and RMS norm. A row is
// read from memory once; later passes over it read the cache.

#ifndef NN_KERNELS_CPU_NORM_LOOPS_H_
#define NN_KERNELS_CPU_NORM_LOOPS_H_

#include "nn/kernels/cpu/channel_loops.h"
#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

// totals[k] = sum of the values[k] that terms(load, values) sets, over the
// vectors of n elements; load(p) is the same as in ForEachVector. Summed in f32
// in chunks of 64 vectors, and over chunks in f64.
template <int kTerms, typename Terms>
TROUPE_INLINE void SumVectors(Index n, Terms terms, double* totals) {
  constexpr Index kChunk = 64 * kLanes;
  constexpr int kChains = 4;
  for (int k = 0; k < kTerms; ++k) totals[k] = 0;
  for (Index begin = 0; begin < n; begin += kChunk) {
    const Index end = Min(n, begin + kChunk);
    Vec sums[kChains][kTerms] = {};
    Vec values[kTerms];
    Index i = begin;
    for (; i + kChains * kLanes <= end; i += kChains * kLanes) {
      TROUPE_UNROLL
      for (int u = 0; u < kChains; ++u) {
        const Index at = i + u * kLanes;
        terms([at](const float* p) { return Load(p + at); }, values);
        for (int k = 0; k < kTerms; ++k) {
          sums[u][k] = Plus(sums[u][k], values[k]);
        }
      }
    }
    for (; i < end; i += kLanes) {
      const Mask mask = First(end - i);
      terms([i, mask](const float* p) { return LoadSome(p + i, mask); },
            values);
      for (int k = 0; k < kTerms; ++k) {
        sums[0][k] = Plus(sums[0][k], KeepSome(values[k], mask, Zero()));
      }
    }
    for (int k = 0; k < kTerms; ++k) {
      totals[k] += SumLanes(
          Plus(Plus(sums[0][k], sums[1][k]), Plus(sums[2][k], sums[3][k])));
    }
  }
}

// Computes mean and variance in two passes: no cancellation.
inline void NormRowsForward(Index rows, Index d, bool centered, double eps,
                            const float* x, const float* w, const float* b,
                            float* y, double* stats) {
  const double count = static_cast<double>(d);
  for (Index r = 0; r < rows; ++r, x += d, y += d, stats += 2) {
    double sum = 0, squares;
    if (centered) {
      SumVectors<1>(
          d, [=](auto load, Vec* v) { v[0] = load(x); }, &sum);
    }
    const Vec mean = Set(static_cast<float>(sum / count));
    SumVectors<1>(
        d,
        [=](auto load, Vec* v) {
          const Vec apart = Minus(load(x), mean);
          v[0] = Times(apart, apart);
        },
        &squares);
    stats[0] = sum / count;
    stats[1] = 1 / __builtin_sqrt(squares / count + eps);
    const Vec rstd = Set(static_cast<float>(stats[1]));
    ForEachVector(d, [=](auto load, auto store) {
      const Vec hat = Times(Minus(load(x), mean), rstd);
      const Vec bias = b ? load(b) : Zero();
      store(y, w ? Fma(hat, load(w), bias) : Plus(hat, bias));
    });
  }
}

inline void NormRowsBackwardInput(Index rows, Index d, bool centered,
                                  const float* x, const double* stats,
                                  const float* w, const float* dy, float* dx) {
  const double count = static_cast<double>(d);
  for (Index r = 0; r < rows; ++r, x += d, dy += d, dx += d, stats += 2) {
    const Vec mean = Set(static_cast<float>(stats[0]));
    const Vec rstd = Set(static_cast<float>(stats[1]));
    double sums[2];
    SumVectors<2>(
        d,
        [=](auto load, Vec* v) {
          v[0] = w ? Times(load(dy), load(w)) : load(dy);
          v[1] = Times(v[0], Times(Minus(load(x), mean), rstd));
        },
        sums);
    const Vec taken = Set(static_cast<float>(centered ? sums[0] / count : 0));
    const Vec projected = Set(static_cast<float>(sums[1] / count));
    ForEachVector(d, [=](auto load, auto store) {
      const Vec g = w ? Times(load(dy), load(w)) : load(dy);
      const Vec hat = Times(Minus(load(x), mean), rstd);
      const Vec apart = Minus(Minus(g, taken), Times(hat, projected));
      store(dx, Times(rstd, apart));
    });
  }
}

// sums[0, padded) += sum of dy, sums[padded, 2 padded) += sum of dy xhat; eight
// rows at a time in f32, their sums in f64.
inline void NormRowsBackwardWeight(Index rows, Index d, const float* x,
                                   const double* stats, const float* dy,
                                   double* sums) {
  constexpr Index kRows = 8;
  double* scaled = sums + PaddedChannels(d);
  for (Index begin = 0; begin < rows; begin += kRows) {
    const Index end = Min(rows, begin + kRows);
    ForEachColumn(d, [=](Index c, auto load) {
      Vec sum = Zero(), sum_scaled = Zero();
      for (Index r = begin; r < end; ++r) {
        const Vec mean = Set(static_cast<float>(stats[2 * r]));
        const Vec rstd = Set(static_cast<float>(stats[2 * r + 1]));
        const Vec g = load(dy + r * d + c);
        const Vec apart = Minus(load(x + r * d + c), mean);
        sum = Plus(sum, g);
        sum_scaled = Fma(g, Times(apart, rstd), sum_scaled);
      }
      StoreWide(sums + c, PlusWide(LoadWide(sums + c), Widen(sum)));
      StoreWide(scaled + c, PlusWide(LoadWide(scaled + c), Widen(sum_scaled)));
    });
  }
}

constexpr void SetNormLoops(Loops& loops) {
  loops.norm_rows_forward = NormRowsForward;
  loops.norm_rows_backward_input = NormRowsBackwardInput;
  loops.norm_rows_backward_weight = NormRowsBackwardWeight;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_NORM_LOOPS_H_
