// f32 from and to the two 16-bit floating types, rounding to nearest, ties to
// even; bits as in nn/tensor/dtype.h but for the payload of a NaN.

#ifndef NN_KERNELS_CPU_CONVERT_LOOPS_H_
#define NN_KERNELS_CPU_CONVERT_LOOPS_H_

#include <cstdint>

#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

// Integers only: the compiler's vectors give the same bits as one by one.
inline void WidenBf16(Index n, const std::uint16_t* x, float* y) {
  for (Index i = 0; i < n; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(x[i]) << 16;
    __builtin_memcpy(y + i, &bits, sizeof(bits));
  }
}

inline void NarrowBf16(Index n, const float* x, std::uint16_t* y) {
  for (Index i = 0; i < n; ++i) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, x + i, sizeof(bits));
    const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    y[i] =
        static_cast<std::uint16_t>((is_nan ? bits | 0x400000u : rounded) >> 16);
  }
}

#if defined(__F16C__)

constexpr Index kHalves = 8;

inline void WidenF16(Index n, const std::uint16_t* x, float* y) {
  Index i = 0;
  for (; i + kHalves <= n; i += kHalves) {
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(
                                reinterpret_cast<const __m128i*>(x + i))));
  }
  for (; i < n; ++i) y[i] = _cvtsh_ss(x[i]);
}

inline void NarrowF16(Index n, const float* x, std::uint16_t* y) {
  Index i = 0;
  for (; i + kHalves <= n; i += kHalves) {
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(y + i),
        _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) y[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}

#endif

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CONVERT_LOOPS_H_
