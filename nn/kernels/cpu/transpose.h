// Transposition of f32 matrices through registers, kLanes x kLanes at a time.

#ifndef NN_KERNELS_CPU_TRANSPOSE_H_
#define NN_KERNELS_CPU_TRANSPOSE_H_

#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

#if defined(__AVX512F__)

TROUPE_INLINE void TransposeRegisters(Vec (&v)[16]) {
  __m512d t[16];
  TROUPE_UNROLL
  for (int i = 0; i < 16; i += 4) {
    const Vec a = _mm512_unpacklo_ps(v[i], v[i + 1]);
    const Vec b = _mm512_unpackhi_ps(v[i], v[i + 1]);
    const Vec c = _mm512_unpacklo_ps(v[i + 2], v[i + 3]);
    const Vec d = _mm512_unpackhi_ps(v[i + 2], v[i + 3]);
    t[i] = _mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(c));
    t[i + 1] = _mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(c));
    t[i + 2] = _mm512_unpacklo_pd(_mm512_castps_pd(b), _mm512_castps_pd(d));
    t[i + 3] = _mm512_unpackhi_pd(_mm512_castps_pd(b), _mm512_castps_pd(d));
  }
  // t[4 g + j], lane group l: column 4 l + j of rows 4 g .. 4 g + 3.
  TROUPE_UNROLL
  for (int j = 0; j < 4; ++j) {
    const Vec g0 = _mm512_castpd_ps(t[j]), g1 = _mm512_castpd_ps(t[4 + j]);
    const Vec g2 = _mm512_castpd_ps(t[8 + j]), g3 = _mm512_castpd_ps(t[12 + j]);
    const Vec low01 = _mm512_shuffle_f32x4(g0, g1, 0x44);
    const Vec low23 = _mm512_shuffle_f32x4(g2, g3, 0x44);
    const Vec high01 = _mm512_shuffle_f32x4(g0, g1, 0xee);
    const Vec high23 = _mm512_shuffle_f32x4(g2, g3, 0xee);
    v[j] = _mm512_shuffle_f32x4(low01, low23, 0x88);
    v[4 + j] = _mm512_shuffle_f32x4(low01, low23, 0xdd);
    v[8 + j] = _mm512_shuffle_f32x4(high01, high23, 0x88);
    v[12 + j] = _mm512_shuffle_f32x4(high01, high23, 0xdd);
  }
}

#elif defined(__AVX2__)

TROUPE_INLINE void TransposeRegisters(Vec (&v)[8]) {
  Vec t[8];
  TROUPE_UNROLL
  for (int i = 0; i < 8; i += 4) {
    const Vec a = _mm256_unpacklo_ps(v[i], v[i + 1]);
    const Vec b = _mm256_unpackhi_ps(v[i], v[i + 1]);
    const Vec c = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
    const Vec d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
    t[i] = _mm256_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
  }
  TROUPE_UNROLL
  for (int j = 0; j < 4; ++j) {
    v[j] = _mm256_permute2f128_ps(t[j], t[4 + j], 0x20);
    v[4 + j] = _mm256_permute2f128_ps(t[j], t[4 + j], 0x31);
  }
}

#else

TROUPE_INLINE void TransposeRegisters(Vec (&v)[4]) {
  const Vec a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5);
  const Vec b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
  const Vec c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5);
  const Vec d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

#endif

// y[j, i] = x[i, j] + (add ? add[i] : 0) for at most kLanes rows and columns.
// Writes the lanes `put` of each row of y; those past `rows` get zeros.
inline void TransposeBlock(Index rows, Index cols, const float* x,
                           Index x_stride, float* y, Index y_stride, Mask put,
                           const float* add) {
  Vec v[kLanes];
  const Mask take = First(cols);
  TROUPE_UNROLL
  for (int i = 0; i < kLanes; ++i) {
    v[i] = i < rows ? LoadSome(x + i * x_stride, take) : Zero();
  }
  TransposeRegisters(v);
  const Vec offset = add ? LoadSome(add, First(rows)) : Zero();
  TROUPE_UNROLL
  for (int j = 0; j < kLanes; ++j) {
    if (j < cols) {
      StoreSome(y + j * y_stride, add ? Plus(v[j], offset) : v[j], put);
    }
  }
}

// y[cols, rows] = x[rows, cols] (+ add[row]). With `pad`, y_stride is a
// multiple of kLanes and the end of each row of y is filled with zeros.
inline void TransposeMatrix(Index rows, Index cols, const float* x,
                            Index x_stride, float* y, Index y_stride, bool pad,
                            const float* add) {
  for (Index i = 0; i < rows; i += kLanes) {
    const Mask put = First(pad ? kLanes : rows - i);
    for (Index j = 0; j < cols; j += kLanes) {
      TransposeBlock(Min(kLanes, rows - i), Min(kLanes, cols - j),
                     x + i * x_stride + j, x_stride, y + j * y_stride + i,
                     y_stride, put, add ? add + i : nullptr);
    }
  }
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_TRANSPOSE_H_
