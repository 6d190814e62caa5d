// Loops of functions of two operands (nn/kernels/element_formulas.h), over
// rows of broadcast operands. An element's bits depend on its operands alone.

#ifndef NN_KERNELS_CPU_BINARY_LOOPS_H_
#define NN_KERNELS_CPU_BINARY_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"
#include "nn/kernels/element_formulas.h"

namespace troupe::nn::cpu {
namespace {

template <bool kOneA, bool kOneB, typename Function>
TROUPE_INLINE void BinaryRow(Index n, const float* a, const float* b, float* y,
                             Function function) {
  const Vec same_a = kOneA ? Set(*a) : Zero();
  const Vec same_b = kOneB ? Set(*b) : Zero();
  ForEachVector(n, [=](auto load, auto store) {
    store(y, function(kOneA ? same_a : load(a), kOneB ? same_b : load(b)));
  });
}

template <typename Function>
TROUPE_INLINE void BinaryRows(const BinaryShape& shape, const float* a,
                              const float* b, float* y, Function function) {
  for (Index row = 0; row < shape.rows; ++row) {
    if (shape.one_a) {
      BinaryRow<true, false>(shape.cols, a, b, y, function);
    } else if (shape.one_b) {
      BinaryRow<false, true>(shape.cols, a, b, y, function);
    } else {
      BinaryRow<false, false>(shape.cols, a, b, y, function);
    }
    a += shape.a_row;
    b += shape.b_row;
    y += shape.cols;
  }
}

inline void Binary(BinaryFunction f, const BinaryShape& shape, const float* a,
                   const float* b, float* y) {
  WithBinary(
      f, [&](auto function) __attribute__((always_inline)) {
        BinaryRows(shape, a, b, y, function);
      });
}

constexpr void SetBinaryLoops(Loops& loops) { loops.binary = Binary; }

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_BINARY_LOOPS_H_
