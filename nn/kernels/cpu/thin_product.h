// Products of few rows by a matrix that is stored output by output, as the
// weights of a linear layer and the keys of attention are. They take the time
// to read the matrix, which is read once, in place:
//
//   ThinProduct p;                       // y[n, m] = x[n, k] w[m, k]^T
//   p.rows = n, p.cols = m, p.depth = k;
//   MultiplyThin(p);
//
// Squares of the matrix are transposed in registers, so that a vector has one
// term of kLanes outputs. An element of y is the same sum as in product.h:
// chains of kDepth fma, in ascending order, whatever the number of rows.

#ifndef NN_KERNELS_CPU_THIN_PRODUCT_H_
#define NN_KERNELS_CPU_THIN_PRODUCT_H_

#include "nn/kernels/cpu/product.h"
#include "nn/kernels/cpu/transpose.h"

namespace troupe::nn::cpu {
namespace {

// Largest number of rows. The tiles of product.h take as long for 24 rows.
constexpr Index kThinRows = 16;
// Number of terms that a row is read ahead of its use.
constexpr Index kTermsAhead = 256;

struct ThinProduct {
  Index rows, cols, depth;  // rows: at most kThinRows
  const float* x;           // [rows, depth]
  Index x_stride;
  const float* w;  // [cols, depth]
  Index w_stride;
  float* y;  // [rows, cols]
  Index y_stride;
  float scale = 1.0f;          // factor of w
  const float* end = nullptr;  // [cols], added to the sums at last
};

// kLanes outputs, the rows of w from `w` on; fewer at the end of the matrix.
struct ThinStripe {
  const float* w;
  Index outputs;
};

// Reads ahead, beside terms [p, p + kLanes) of a stripe, what comes kTermsAhead
// later: two vectors of half of the rows, since memory gives pairs of cache
// lines. A CPU does not follow so many rows by itself: 12.8 GB/s of weights
// became 15.9 for one row of x, and 8.2 became 14 for eight.
TROUPE_INLINE void ReadAhead(const ThinProduct& m, const ThinStripe& at,
                             Index p) {
  const Index half = p / kLanes % 2;
  const Index term = p - half * kLanes + Min(kTermsAhead, m.depth);
  const float* next =
      at.w + half * (kLanes / 2) * m.w_stride +
      (term < m.depth ? term : kLanes * m.w_stride + term - m.depth);
  TROUPE_UNROLL
  for (int i = 0; i < kLanes / 2; ++i, next += m.w_stride) {
    __builtin_prefetch(next);
    __builtin_prefetch(next + kLanes);
  }
}

// Adds terms [p, p + kLanes) of a stripe to the chains of all rows, or those
// that are left.
template <bool kWhole>
TROUPE_INLINE void AddThinSquare(const ThinProduct& m, const ThinStripe& at,
                                 Index p, Vec* chains) {
  const Index terms = m.depth - p;
  Vec square[kLanes];
  TROUPE_UNROLL
  for (int i = 0; i < kLanes; ++i) {
    const float* const row = at.w + i * m.w_stride + p;
    square[i] = kWhole           ? Load(row)
                : i < at.outputs ? LoadSome(row, First(terms))
                                 : Zero();
  }
  ReadAhead(m, at, p);
  TransposeRegisters(square);
  if (m.scale != 1.0f) {
    TROUPE_UNROLL
    for (int j = 0; j < kLanes; ++j) square[j] = Times(square[j], Set(m.scale));
  }
  const float* x = m.x + p;
  for (Index i = 0; i < m.rows; ++i, x += m.x_stride) {
    Vec chain = chains[i];
    TROUPE_UNROLL
    for (int j = 0; j < kLanes; ++j) {
      if (kWhole || j < terms) chain = Fma(Set(x[j]), square[j], chain);
    }
    chains[i] = chain;
  }
}

inline void MultiplyThin(const ThinProduct& m) {
  Vec chains[kThinRows], sums[kThinRows];
  for (Index col = 0; col < m.cols; col += kLanes) {
    const ThinStripe at = {m.w + col * m.w_stride, m.cols - col};
    for (Index first = 0; first == 0 || first < m.depth; first += kDepth) {
      for (Index i = 0; i < m.rows; ++i) chains[i] = Zero();
      for (Index p = first; p < Min(first + kDepth, m.depth); p += kLanes) {
        if (at.outputs >= kLanes && m.depth - p >= kLanes) {
          AddThinSquare<true>(m, at, p, chains);
        } else {
          AddThinSquare<false>(m, at, p, chains);
        }
      }
      for (Index i = 0; i < m.rows; ++i) {
        sums[i] = first == 0 ? chains[i] : Plus(sums[i], chains[i]);
      }
    }
    const Mask put = First(at.outputs);
    for (Index i = 0; i < m.rows; ++i) {
      if (m.end) sums[i] = Plus(sums[i], LoadSome(m.end + col, put));
      StoreSome(m.y + i * m.y_stride + col, sums[i], put);
    }
  }
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_THIN_PRODUCT_H_
