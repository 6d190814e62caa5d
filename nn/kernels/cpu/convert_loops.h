// Conversions of f32 from and to the 16-bit floating types, rounding to
// nearest, ties to even: the bits of base/half.h.

#ifndef NN_KERNELS_CPU_CONVERT_LOOPS_H_
#define NN_KERNELS_CPU_CONVERT_LOOPS_H_

#include <cstdint>

#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

// Calls convert(from, to) for each vector of n elements. The last vector ends
// at the last element, and converts some elements a second time; less than one
// vector goes through a padded copy.
template <typename From, typename To, typename Convert>
TROUPE_INLINE void ConvertVectors(Index n, const From* x, To* y,
                                  Convert convert) {
  if (n < kLanes) {
    From from[kLanes] = {};
    To to[kLanes];
    for (Index i = 0; i < n; ++i) from[i] = x[i];
    convert(from, to);
    for (Index i = 0; i < n; ++i) y[i] = to[i];
    return;
  }
  for (Index i = 0; i + kLanes <= n; i += kLanes) convert(x + i, y + i);
  if (n % kLanes != 0) convert(x + n - kLanes, y + n - kLanes);
}

inline void WidenBF16(Index n, const std::uint16_t* x, float* y) {
  ConvertVectors(n, x, y, [](const std::uint16_t* from, float* to) {
    Store(to, LoadBF16(from));
  });
}

inline void NarrowBF16(Index n, const float* x, std::uint16_t* y) {
  ConvertVectors(n, x, y, [](const float* from, std::uint16_t* to) {
    StoreBF16(to, Load(from));
  });
}

inline void WidenF16(Index n, const std::uint16_t* x, float* y) {
  ConvertVectors(n, x, y, [](const std::uint16_t* from, float* to) {
    Store(to, LoadF16(from));
  });
}

inline void NarrowF16(Index n, const float* x, std::uint16_t* y) {
  ConvertVectors(n, x, y, [](const float* from, std::uint16_t* to) {
    StoreF16(to, Load(from));
  });
}

constexpr void SetConvertLoops(Loops& loops) {
  loops.widen_bf16 = WidenBF16;
  loops.narrow_bf16 = NarrowBF16;
  loops.widen_f16 = WidenF16;
  loops.narrow_f16 = NarrowF16;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CONVERT_LOOPS_H_
