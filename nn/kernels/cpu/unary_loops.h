// Loops of functions of one number (nn/kernels/element_functions.h). An
// element's bits depend on its operands alone.

#ifndef NN_KERNELS_CPU_UNARY_LOOPS_H_
#define NN_KERNELS_CPU_UNARY_LOOPS_H_

#include "nn/kernels/cpu/elementwise_loops.h"
#include "nn/kernels/cpu/functions.h"
#include "nn/kernels/cpu/simd.h"
#include "nn/kernels/element_functions.h"

namespace troupe::nn::cpu {
namespace {

// The functions with their derivatives: At(x) is f(x), and Slope(saved, dy) is
// f'(x) dy, with `saved` as in UnaryKernels.

struct NegateFn {
  TROUPE_INLINE Vec At(Vec x) const { return Times(x, Set(-1.0f)); }
  TROUPE_INLINE Vec Slope(Vec, Vec dy) const { return At(dy); }
};

struct ExpFn {
  TROUPE_INLINE Vec At(Vec x) const { return Exp(x); }
  TROUPE_INLINE Vec Slope(Vec y, Vec dy) const { return Times(dy, y); }
};

struct LogFn {
  TROUPE_INLINE Vec At(Vec x) const { return Log(x); }
  TROUPE_INLINE Vec Slope(Vec x, Vec dy) const { return Over(dy, x); }
};

struct SqrtFn {
  TROUPE_INLINE Vec At(Vec x) const { return SquareRoot(x); }
  TROUPE_INLINE Vec Slope(Vec y, Vec dy) const { return Over(dy, Plus(y, y)); }
};

struct ScaleFn {
  Vec p;
  TROUPE_INLINE Vec At(Vec x) const { return Times(x, p); }
  TROUPE_INLINE Vec Slope(Vec, Vec dy) const { return Times(dy, p); }
};

struct AddScalarFn {
  Vec p;
  TROUPE_INLINE Vec At(Vec x) const { return Plus(x, p); }
  TROUPE_INLINE Vec Slope(Vec, Vec dy) const { return dy; }
};

struct LeakyReluFn {
  Vec p;
  TROUPE_INLINE Vec At(Vec x) const { return Slope(x, x); }
  TROUPE_INLINE Vec Slope(Vec x, Vec dy) const {
    return Choose(Greater(x, Zero()), dy, Times(dy, p));
  }
};

struct GeluFn {
  TROUPE_INLINE Vec At(Vec x) const {
    return Times(x, NormalOf(x).distribution);
  }
  TROUPE_INLINE Vec Slope(Vec x, Vec dy) const {
    const NormalValues normal = NormalOf(x);
    return Times(dy, Fma(x, normal.density, normal.distribution));
  }
};

// x Sigma(v), v = 2 sqrt(2/pi) (x + 0.044715 x^3): the same as
// (1 + tanh(v / 2)) / 2, but without cancellation.
struct GeluTanhFn {
  static constexpr float kLinear = 1.5957691216f;
  static constexpr float kCubic = 0.044715f * 1.5957691216f;
  TROUPE_INLINE Vec Gate(Vec x) const {
    const Vec factor = Fma(Times(x, x), Set(kCubic), Set(kLinear));
    return Sigmoid(Times(x, factor));
  }
  TROUPE_INLINE Vec At(Vec x) const { return Times(x, Gate(x)); }
  TROUPE_INLINE Vec Slope(Vec x, Vec dy) const {
    const Vec gate = Gate(x);
    const Vec dv = Fma(Times(x, x), Set(3.0f * kCubic), Set(kLinear));
    const Vec rest = Times(Times(x, dv), Minus(Set(1.0f), gate));
    return Times(dy, Fma(gate, rest, gate));
  }
};

struct SiluFn {
  TROUPE_INLINE Vec At(Vec x) const { return Times(x, Sigmoid(x)); }
  TROUPE_INLINE Vec Slope(Vec x, Vec dy) const {
    const Vec gate = Sigmoid(x);
    const Vec rest = Times(x, Minus(Set(1.0f), gate));
    return Times(dy, Fma(gate, rest, gate));
  }
};

struct SigmoidFn {
  TROUPE_INLINE Vec At(Vec x) const { return Sigmoid(x); }
  TROUPE_INLINE Vec Slope(Vec y, Vec dy) const {
    return Times(dy, Times(y, Minus(Set(1.0f), y)));
  }
};

struct TanhFn {
  TROUPE_INLINE Vec At(Vec x) const { return Tanh(x); }
  TROUPE_INLINE Vec Slope(Vec y, Vec dy) const {
    return Times(dy, Times(Minus(Set(1.0f), y), Plus(Set(1.0f), y)));
  }
};

// Calls run(function) with the function object of `f` with parameter `p`.
template <typename Run>
TROUPE_INLINE void WithUnary(UnaryFunction f, float p, Run run) {
  switch (f) {
    case UnaryFunction::kNegate:
      return run(NegateFn{});
    case UnaryFunction::kExp:
      return run(ExpFn{});
    case UnaryFunction::kLog:
      return run(LogFn{});
    case UnaryFunction::kSqrt:
      return run(SqrtFn{});
    case UnaryFunction::kScale:
      return run(ScaleFn{Set(p)});
    case UnaryFunction::kAddScalar:
      return run(AddScalarFn{Set(p)});
    case UnaryFunction::kLeakyRelu:
      return run(LeakyReluFn{Set(p)});
    case UnaryFunction::kGelu:
      return run(GeluFn{});
    case UnaryFunction::kGeluTanh:
      return run(GeluTanhFn{});
    case UnaryFunction::kSilu:
      return run(SiluFn{});
    case UnaryFunction::kSigmoid:
      return run(SigmoidFn{});
    case UnaryFunction::kTanh:
      return run(TanhFn{});
  }
}

inline void UnaryForward(UnaryFunction f, float p, Index n, const float* x,
                         float* y) {
  WithUnary(f, p, [=](auto function) {
    ForEachVector(
        n, [=](auto load, auto store) { store(y, function.At(load(x))); });
  });
}

inline void UnaryBackward(UnaryFunction f, float p, Index n, const float* saved,
                          const float* dy, float* dx) {
  WithUnary(f, p, [=](auto function) {
    ForEachVector(n, [=](auto load, auto store) {
      store(dx, function.Slope(load(saved), load(dy)));
    });
  });
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_UNARY_LOOPS_H_
