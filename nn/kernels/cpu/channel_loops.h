// Loops over rows x[R, C] whose channels are normalised separately: batch norm,
// and group norm sample by sample.
//
// Arrays of one value per channel are padded to whole vectors (PaddedChannels).
// Sums are f64: those of x and x^2 element by element, since their difference
// is the variance; gradients in f32 over kRowsOfSum rows, then in f64. A
// channel's sum takes its rows in ascending order, whatever the division into
// blocks.

#ifndef NN_KERNELS_CPU_CHANNEL_LOOPS_H_
#define NN_KERNELS_CPU_CHANNEL_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

constexpr Index kRowsOfSum = 8;

// Calls fn(begin, end) for blocks of rows that stay in the first-level cache
// while columns are summed one vector after another.
template <typename Fn>
TROUPE_INLINE void ForEachRowBlock(Index rows, Index channels, Fn fn) {
  constexpr Index kFloats = 4096;
  const Index groups = Max(1, kFloats / (channels * kRowsOfSum));
  const Index block = groups * kRowsOfSum;
  for (Index begin = 0; begin < rows; begin += block) {
    fn(begin, Min(rows, begin + block));
  }
}

// Calls column(c, load) for each vector of channels [c, c + kLanes); load(p)
// accesses only existing channels of p.
template <typename Column>
TROUPE_INLINE void ForEachColumn(Index channels, Column column) {
  Index c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    column(c, [](const float* p) { return Load(p); });
  }
  if (c < channels) {
    const Mask mask = First(channels - c);
    column(c, [mask](const float* p) { return LoadSome(p, mask); });
  }
}

inline void ChannelSums(Index rows, Index channels, const float* x,
                        double* sums) {
  double* squares = sums + PaddedChannels(channels);
  ForEachRowBlock(rows, channels, [=](Index begin, Index end) {
    ForEachColumn(channels, [=](Index c, auto load) {
      Wide sum = LoadWide(sums + c), square = LoadWide(squares + c);
      for (Index r = begin; r < end; ++r) {
        const Wide v = Widen(load(x + r * channels + c));
        sum = PlusWide(sum, v);
        square = FmaWide(v, v, square);
      }
      StoreWide(sums + c, sum);
      StoreWide(squares + c, square);
    });
  });
}

// Values of a vector of channels: z = (x - mean) scale + shift. load(p) loads
// that vector of an array p.
struct ChannelVec {
  template <typename LoadFn>
  TROUPE_INLINE ChannelVec(const ChannelAffine& all, LoadFn load)
      : mean(load(all.mean)), scale(load(all.scale)), shift(load(all.shift)) {}

  TROUPE_INLINE Vec Centered(Vec x) const { return Minus(x, mean); }
  TROUPE_INLINE Vec Affine(Vec x) const {
    return Fma(Centered(x), scale, shift);
  }
  // Returns the gradient before the ReLU, if there is one.
  template <bool kRelu>
  TROUPE_INLINE Vec Masked(Vec x, Vec dy) const {
    if constexpr (kRelu) return WherePositiveOrNan(Affine(x), dy);
    return dy;
  }

  Vec mean, scale, shift;
};

template <bool kResidual, bool kRelu>
inline void AffineRows(Index rows, Index channels, const ChannelAffine& affine,
                       const float* x, const float* residual, float* y) {
  for (Index i = 0; i < rows * channels; i += channels) {
    ForEachVector(channels, [=](auto load, auto store) {
      Vec z = ChannelVec(affine, load).Affine(load(x + i));
      if constexpr (kResidual) z = Plus(z, load(residual + i));
      if constexpr (kRelu) z = MaxOrSecond(Zero(), z);
      store(y + i, z);
    });
  }
}

inline void ChannelForward(Index rows, Index channels,
                           const ChannelAffine& affine, const float* x,
                           const float* residual, bool relu, float* y) {
  if (residual) {
    relu ? AffineRows<true, true>(rows, channels, affine, x, residual, y)
         : AffineRows<true, false>(rows, channels, affine, x, residual, y);
  } else {
    relu ? AffineRows<false, true>(rows, channels, affine, x, residual, y)
         : AffineRows<false, false>(rows, channels, affine, x, residual, y);
  }
}

template <bool kRelu>
inline void GradientSums(Index rows, Index channels,
                         const ChannelAffine& affine, const float* x,
                         const float* dy, double* sums) {
  double* projected = sums + PaddedChannels(channels);
  ForEachRowBlock(rows, channels, [=](Index begin, Index end) {
    ForEachColumn(channels, [=](Index c, auto load) {
      const ChannelVec channel(affine,
                               [c](const float* p) { return Load(p + c); });
      Wide total = LoadWide(sums + c);
      Wide total_projected = LoadWide(projected + c);
      for (Index r = begin; r < end;) {
        Vec sum = Zero(), sum_projected = Zero();
        for (const Index stop = Min(end, r + kRowsOfSum); r < stop; ++r) {
          const Vec v = load(x + r * channels + c);
          const Vec dz =
              channel.template Masked<kRelu>(v, load(dy + r * channels + c));
          sum = Plus(sum, dz);
          sum_projected = Fma(dz, channel.Centered(v), sum_projected);
        }
        total = PlusWide(total, Widen(sum));
        total_projected = PlusWide(total_projected, Widen(sum_projected));
      }
      StoreWide(sums + c, total);
      StoreWide(projected + c, total_projected);
    });
  });
}

inline void ChannelGradientSums(Index rows, Index channels,
                                const ChannelAffine& affine, const float* x,
                                const float* dy, bool relu, double* sums) {
  relu ? GradientSums<true>(rows, channels, affine, x, dy, sums)
       : GradientSums<false>(rows, channels, affine, x, dy, sums);
}

template <bool kRelu, bool kCentered>
inline void GradientRows(Index rows, Index channels,
                         const ChannelAffine& affine,
                         const ChannelGradientTerms& terms, const float* x,
                         const float* dy, float* dx) {
  for (Index i = 0; i < rows * channels; i += channels) {
    ForEachVector(channels, [=](auto load, auto store) {
      const ChannelVec channel(affine, load);
      const Vec v = load(x + i);
      const Vec dz = channel.template Masked<kRelu>(v, load(dy + i));
      Vec d = Times(channel.scale, dz);
      if constexpr (kCentered) {
        d = Minus(d, Fma(channel.Centered(v), load(terms.projected),
                         load(terms.mean)));
      }
      store(dx + i, d);
    });
  }
}

inline void ChannelBackward(Index rows, Index channels,
                            const ChannelAffine& affine,
                            const ChannelGradientTerms& terms, const float* x,
                            const float* dy, bool relu, float* dx) {
  if (terms.mean) {
    relu ? GradientRows<true, true>(rows, channels, affine, terms, x, dy, dx)
         : GradientRows<false, true>(rows, channels, affine, terms, x, dy, dx);
  } else {
    relu ? GradientRows<true, false>(rows, channels, affine, terms, x, dy, dx)
         : GradientRows<false, false>(rows, channels, affine, terms, x, dy, dx);
  }
}

constexpr void SetChannelLoops(Loops& loops) {
  loops.channel_sums = ChannelSums;
  loops.channel_forward = ChannelForward;
  loops.channel_gradient_sums = ChannelGradientSums;
  loops.channel_backward = ChannelBackward;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CHANNEL_LOOPS_H_
