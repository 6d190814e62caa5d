// Linear layers on the products of product.h. The forward pass transposes its
// smaller operand: either w (then a tile is samples x outputs) or x and y (then
// it is outputs x samples, and w is read once, in place). For few samples it
// transposes w as it reads it (thin_product.h). The backward passes take their
// operands in place.

#ifndef NN_KERNELS_CPU_LINEAR_LOOPS_H_
#define NN_KERNELS_CPU_LINEAR_LOOPS_H_

#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/product.h"
#include "nn/kernels/cpu/thin_product.h"
#include "nn/kernels/cpu/transpose.h"

namespace troupe::nn::cpu {
namespace {

inline bool TransposesWeights(Index n, Index k, Index m) {
  return m * k <= n * (k + m);
}

// Whether a forward pass takes few samples by many weights.
inline bool IsThin(Index n, Index k, Index m) {
  return n <= kThinRows && !TransposesWeights(n, k, m);
}

// Returns the floats of the operand that a forward pass transposes, and of y.
inline Index TransposedFloats(Index n, Index k, Index m) {
  return TransposesWeights(n, k, m) ? k * Padded(m) : (k + m) * Padded(n);
}

// Returns enough floats for each of the three passes.
inline Index LinearScratch(Index n, Index k, Index m) {
  const Index forward = TransposesWeights(n, k, m)
                            ? ProductScratch(n, m)
                            : ProductScratch(m, Padded(n));
  return Max(TransposedFloats(n, k, m) + forward,
             Max(ProductScratch(n, k), ProductScratch(m, k)));
}

inline void LinearForward(Index n, Index k, Index m, const float* x,
                          const float* w, Index ld, const float* b, float* y,
                          float* scratch) {
  if (IsThin(n, k, m)) {
    ThinProduct p;
    p.rows = n;
    p.cols = m;
    p.depth = k;
    p.x = x;
    p.x_stride = ld;
    p.w = w;
    p.w_stride = ld;
    p.y = y;
    p.y_stride = m;
    p.end = b;
    return MultiplyThin(p);
  }
  Product p;
  p.depth = k;
  if (TransposesWeights(n, k, m)) {
    TransposeMatrix(m, k, w, ld, scratch, Padded(m), /*pad=*/true, nullptr);
    p.rows = n;
    p.cols = m;
    p.a = x;
    p.a_stride = ld;
    p.b = scratch;
    p.b_stride = Padded(m);
    p.c = y;
    p.c_stride = m;
    p.start = b;
    p.scratch = scratch + TransposedFloats(n, k, m);
    Multiply</*kPacked=*/false>(p);
  } else {
    float* yt = scratch + k * Padded(n);
    TransposeMatrix(n, k, x, ld, scratch, Padded(n), /*pad=*/true, nullptr);
    p.rows = m;
    p.cols = Padded(n);
    p.a = w;
    p.a_stride = ld;
    p.b = scratch;
    p.b_stride = Padded(n);
    p.c = yt;
    p.c_stride = Padded(n);
    p.scratch = scratch + TransposedFloats(n, k, m);
    Multiply</*kPacked=*/false>(p);
    TransposeMatrix(m, n, yt, Padded(n), y, m, /*pad=*/false, b);
  }
}

inline void LinearBackwardInput(Index n, Index k, Index m, const float* dy,
                                Index ld, const float* w, bool accumulate,
                                float* dx, float* scratch) {
  Product p;
  p.rows = n;
  p.cols = k;
  p.depth = m;
  p.a = dy;
  p.a_stride = ld;
  p.b = w;
  p.b_stride = k;
  p.c = dx;
  p.c_stride = k;
  p.accumulate = accumulate;
  p.scratch = scratch;
  Multiply</*kPacked=*/false>(p);
}

// Computes rows [begin, begin + rows) of the gradient, at dw.
inline void LinearBackwardWeight(Index n, Index k, Index m, Index begin,
                                 Index rows, const float* x, const float* dy,
                                 bool accumulate, float* dw, float* scratch) {
  Product p;
  p.rows = rows;
  p.cols = k;
  p.depth = n;
  p.a = dy + begin;
  p.a_stride = m;
  p.b = x;
  p.b_stride = k;
  p.c = dw;
  p.c_stride = k;
  p.accumulate = accumulate;
  p.scratch = scratch;
  Multiply</*kPacked=*/true>(p);
}

inline void AddToRows(Index n, Index m, const float* b, float* y) {
  for (Index i = 0; i < n; ++i, y += m) {
    for (Index j = 0; j < m; j += kLanes) {
      const Mask mask = First(m - j);
      StoreSome(y + j, Plus(LoadSome(y + j, mask), LoadSome(b + j, mask)),
                mask);
    }
  }
}

// For columns narrower than a vector: kLanes rows are m whole vectors.
inline void NarrowSumsOfBlock(Index n, Index m, const float* x, bool accumulate,
                              float* sums) {
  float partial[kLanes * kLanes];
  for (Index j = 0; j < m; ++j) Store(partial + j * kLanes, Zero());
  const Index blocks = n / kLanes;
  for (Index i = 0; i < blocks; ++i, x += m * kLanes) {
    for (Index j = 0; j < m; ++j) {
      float* at = partial + j * kLanes;
      Store(at, Plus(Load(at), Load(x + j * kLanes)));
    }
  }
  for (Index i = 0; i < (n - blocks * kLanes) * m; ++i) partial[i] += x[i];
  for (Index j = 0; j < m; ++j) {
    float sum = 0.0f;
    for (Index i = 0; i < kLanes; ++i) sum += partial[i * m + j];
    sums[j] = accumulate ? sums[j] + sum : sum;
  }
}

inline void WideSumsOfBlock(Index n, Index m, const float* x, bool accumulate,
                            float* sums) {
  for (Index j = 0; j < m; j += kLanes) {
    const Mask mask = First(m - j);
    Vec even = Zero(), odd = Zero();
    for (Index i = 0; i + 1 < n; i += 2) {
      even = Plus(even, LoadSome(x + i * m + j, mask));
      odd = Plus(odd, LoadSome(x + (i + 1) * m + j, mask));
    }
    if (n % 2) even = Plus(even, LoadSome(x + (n - 1) * m + j, mask));
    Vec sum = Plus(even, odd);
    if (accumulate) sum = Plus(LoadSome(sums + j, mask), sum);
    StoreSome(sums + j, sum, mask);
  }
}

// Adds sums of blocks of rows, so that no chain is longer than those of a
// product: the error of one chain would grow with the number of rows.
inline void ColumnSums(Index n, Index m, const float* x, bool accumulate,
                       float* sums) {
  const bool narrow = m < kLanes && n >= 4 * kLanes;
  const Index block = narrow ? kDepth * kLanes : kDepth;
  for (Index i = 0; i == 0 || i < n; i += block) {
    const Index rows = Min(block, n - i);
    const bool adds = accumulate || i > 0;
    if (narrow) {
      NarrowSumsOfBlock(rows, m, x + i * m, adds, sums);
    } else {
      WideSumsOfBlock(rows, m, x + i * m, adds, sums);
    }
  }
}

constexpr void SetLinearLoops(Loops& loops) {
  loops.linear_scratch = LinearScratch;
  loops.linear_forward = LinearForward;
  loops.linear_backward_input = LinearBackwardInput;
  loops.linear_backward_weight = LinearBackwardWeight;
  loops.column_sums = ColumnSums;
  loops.add_to_rows = AddToRows;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_LINEAR_LOOPS_H_
