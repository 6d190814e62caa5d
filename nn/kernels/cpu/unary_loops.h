// Loops of functions of one number (nn/kernels/element_formulas.h). The bits of
// an element depend on its operands alone.

#ifndef NN_KERNELS_CPU_UNARY_LOOPS_H_
#define NN_KERNELS_CPU_UNARY_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/functions.h"
#include "nn/kernels/cpu/loops.h"
#include "nn/kernels/cpu/simd.h"
#include "nn/kernels/element_formulas.h"

namespace troupe::nn::cpu {
namespace {

// The vectors of this instruction set, as numbers of the formulas.
struct VectorMath {
  using Number = Vec;

  static TROUPE_INLINE Vec Set(float p) { return cpu::Set(p); }
  static TROUPE_INLINE Vec Exp(Vec x) { return cpu::Exp(x); }
  static TROUPE_INLINE Vec Log(Vec x) { return cpu::Log(x); }
  static TROUPE_INLINE Vec SquareRoot(Vec x) { return cpu::SquareRoot(x); }
  static TROUPE_INLINE Vec Tanh(Vec x) { return cpu::Tanh(x); }
  static TROUPE_INLINE Vec Sigmoid(Vec x) { return cpu::Sigmoid(x); }
  static TROUPE_INLINE Vec Sine(Vec x) { return cpu::Sine(x); }
  static TROUPE_INLINE Vec Cosine(Vec x) { return cpu::Cosine(x); }
  static TROUPE_INLINE Vec Magnitude(Vec x) { return cpu::Magnitude(x); }
  static TROUPE_INLINE Vec Power(Vec x, Vec p) { return cpu::Power(x, p); }
  static TROUPE_INLINE Vec Negative(Vec x) { return Times(x, Set(-1.0f)); }
  static TROUPE_INLINE Vec MultiplyAdd(Vec a, Vec b, Vec c) {
    return Fma(a, b, c);
  }
  static TROUPE_INLINE Vec SquareAdd(Vec x, float a, float c) {
    return Fma(Times(x, x), Set(a), Set(c));
  }
  static TROUPE_INLINE Vec IfPositive(Vec x, Vec a, Vec b) {
    return Choose(Greater(x, Zero()), a, b);
  }
  static TROUPE_INLINE Vec NormalDistribution(Vec x) {
    return NormalOf(x).distribution;
  }
  static TROUPE_INLINE NormalValues Normal(Vec x) { return NormalOf(x); }
};

inline void UnaryForward(UnaryFunction f, float p, Index n, const float* x,
                         float* y) {
  WithUnary<VectorMath>(
      f, p, [&](auto function) __attribute__((always_inline)) {
        ForEachVector(
            n, [=](auto load, auto store) { store(y, function.At(load(x))); });
      });
}

inline void UnaryBackward(UnaryFunction f, float p, Index n, const float* saved,
                          const float* dy, float* dx) {
  WithUnary<VectorMath>(
      f, p, [&](auto function) __attribute__((always_inline)) {
        ForEachVector(n, [=](auto load, auto store) {
          store(dx, function.Slope(load(saved), load(dy)));
        });
      });
}

constexpr void SetUnaryLoops(Loops& loops) {
  loops.unary_forward = UnaryForward;
  loops.unary_backward = UnaryBackward;
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_UNARY_LOOPS_H_
