// The formulas of UnaryFunction and BinaryFunction, each written once for the
// kernels of the CPU and of GPUs.
//
//   WithBinary(BinaryFunction::kMultiply,
//              [&](auto formula) { y = formula(a, b); });
//
// A formula of one number is a template over `Math`, which has a backend's type
// of numbers and its functions of them: vectors of floats on the CPU
// (cpu/unary_loops.h), a float on a GPU (cuda/unary.cu). Its members:
//
//     using Number = ...;                    with the operators + - * /
//     Number Set(float p);                   called on the host
//     Number Exp(Number x);                  and Log, SquareRoot, Tanh,
//                                            Sigmoid, Sine, Cosine, Magnitude
//     Number Power(Number x, Number p);      x^p; p is the same in all lanes
//     Number Negative(Number x);             -x
//     Number MultiplyAdd(a, b, c);           a b + c, rounded once or twice
//     Number SquareAdd(x, float a, float c); a x^2 + c, in any order
//     Number IfPositive(x, a, b);            x > 0 ? a : b
//     Number NormalDistribution(x);          P(X <= x)
//     {Number distribution, density} Normal(x);
//
// The order of a formula's operations is a part of the bits of its kernels. The
// oracle, nn/kernels/reference, has formulas of its own.
//
// Only templates and always inlined functions in an unnamed namespace, since
// loops that are compiled once for each instruction set include this header.

#ifndef NN_KERNELS_ELEMENT_FORMULAS_H_
#define NN_KERNELS_ELEMENT_FORMULAS_H_

#include "nn/kernels/element_functions.h"

#if defined(__CUDACC__)
#define TROUPE_FORMULA __device__ __forceinline__
#else
#define TROUPE_FORMULA inline __attribute__((always_inline))
#endif

namespace troupe::nn {
namespace {

// --- Functions of one number: At(x) returns f(x), and Slope(saved, dy) returns
// f'(x) dy, with `saved` as in UnaryKernels ---

template <typename Math, typename N = typename Math::Number>
struct NegateFormula {
  TROUPE_FORMULA N At(N x) const { return Math::Negative(x); }
  TROUPE_FORMULA N Slope(N, N dy) const { return Math::Negative(dy); }
};

template <typename Math, typename N = typename Math::Number>
struct ExpFormula {
  TROUPE_FORMULA N At(N x) const { return Math::Exp(x); }
  TROUPE_FORMULA N Slope(N y, N dy) const { return dy * y; }
};

template <typename Math, typename N = typename Math::Number>
struct LogFormula {
  TROUPE_FORMULA N At(N x) const { return Math::Log(x); }
  TROUPE_FORMULA N Slope(N x, N dy) const { return dy / x; }
};

template <typename Math, typename N = typename Math::Number>
struct SqrtFormula {
  TROUPE_FORMULA N At(N x) const { return Math::SquareRoot(x); }
  TROUPE_FORMULA N Slope(N y, N dy) const { return dy / (y + y); }
};

template <typename Math, typename N = typename Math::Number>
struct ScaleFormula {
  N p;
  TROUPE_FORMULA N At(N x) const { return x * p; }
  TROUPE_FORMULA N Slope(N, N dy) const { return dy * p; }
};

template <typename Math, typename N = typename Math::Number>
struct AddScalarFormula {
  N p;
  TROUPE_FORMULA N At(N x) const { return x + p; }
  TROUPE_FORMULA N Slope(N, N dy) const { return dy; }
};

template <typename Math, typename N = typename Math::Number>
struct LeakyReluFormula {
  N p;
  TROUPE_FORMULA N At(N x) const { return Slope(x, x); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    return Math::IfPositive(x, dy, dy * p);
  }
};

template <typename Math, typename N = typename Math::Number>
struct GeluFormula {
  TROUPE_FORMULA N At(N x) const { return x * Math::NormalDistribution(x); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    const auto normal = Math::Normal(x);
    return dy * Math::MultiplyAdd(x, normal.density, normal.distribution);
  }
};

// x Sigma(v), v = 2 sqrt(2/pi) (x + 0.044715 x^3): the same as
// (1 + tanh(v / 2)) / 2, but without cancellation.
template <typename Math, typename N = typename Math::Number>
struct GeluTanhFormula {
  static constexpr float kLinear = 1.5957691216f;
  static constexpr float kCubic = 0.044715f * 1.5957691216f;
  TROUPE_FORMULA N Gate(N x) const {
    return Math::Sigmoid(x * Math::SquareAdd(x, kCubic, kLinear));
  }
  TROUPE_FORMULA N At(N x) const { return x * Gate(x); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    const N gate = Gate(x);
    const N dv = Math::SquareAdd(x, 3.0f * kCubic, kLinear);
    const N rest = x * dv * (1.0f - gate);
    return dy * Math::MultiplyAdd(gate, rest, gate);
  }
};

template <typename Math, typename N = typename Math::Number>
struct SiluFormula {
  TROUPE_FORMULA N At(N x) const { return x * Math::Sigmoid(x); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    const N gate = Math::Sigmoid(x);
    const N rest = x * (1.0f - gate);
    return dy * Math::MultiplyAdd(gate, rest, gate);
  }
};

template <typename Math, typename N = typename Math::Number>
struct SigmoidFormula {
  TROUPE_FORMULA N At(N x) const { return Math::Sigmoid(x); }
  TROUPE_FORMULA N Slope(N y, N dy) const { return dy * (y * (1.0f - y)); }
};

template <typename Math, typename N = typename Math::Number>
struct TanhFormula {
  TROUPE_FORMULA N At(N x) const { return Math::Tanh(x); }
  TROUPE_FORMULA N Slope(N y, N dy) const {
    return dy * ((1.0f - y) * (1.0f + y));
  }
};

// The factor 2 is with dy, so that a large x does not overflow.
template <typename Math, typename N = typename Math::Number>
struct SquareFormula {
  TROUPE_FORMULA N At(N x) const { return x * x; }
  TROUPE_FORMULA N Slope(N x, N dy) const { return x * (dy + dy); }
};

template <typename Math, typename N = typename Math::Number>
struct RsqrtFormula {
  TROUPE_FORMULA N At(N x) const { return 1.0f / Math::SquareRoot(x); }
  TROUPE_FORMULA N Slope(N y, N dy) const { return dy * (-0.5f * (y * y * y)); }
};

template <typename Math, typename N = typename Math::Number>
struct PowerFormula {
  N p, one_less;
  TROUPE_FORMULA N At(N x) const { return Math::Power(x, p); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    return dy * (p * Math::Power(x, one_less));
  }
};

template <typename Math, typename N = typename Math::Number>
struct AbsoluteFormula {
  N zero;
  TROUPE_FORMULA N At(N x) const { return Math::Magnitude(x); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    const N below =
        Math::IfPositive(Math::Negative(x), Math::Negative(dy), zero);
    return Math::IfPositive(x, dy, below);
  }
};

template <typename Math, typename N = typename Math::Number>
struct SineFormula {
  TROUPE_FORMULA N At(N x) const { return Math::Sine(x); }
  TROUPE_FORMULA N Slope(N x, N dy) const { return dy * Math::Cosine(x); }
};

template <typename Math, typename N = typename Math::Number>
struct CosineFormula {
  TROUPE_FORMULA N At(N x) const { return Math::Cosine(x); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    return Math::Negative(dy * Math::Sine(x));
  }
};

// NaN stays NaN, and has no gradient: no comparison with it holds.
template <typename Math, typename N = typename Math::Number>
struct AtLeastFormula {
  N p, zero;
  TROUPE_FORMULA N At(N x) const { return Math::IfPositive(p - x, p, x); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    return Math::IfPositive(x - p, dy, zero);
  }
};

template <typename Math, typename N = typename Math::Number>
struct AtMostFormula {
  N p, zero;
  TROUPE_FORMULA N At(N x) const { return Math::IfPositive(x - p, p, x); }
  TROUPE_FORMULA N Slope(N x, N dy) const {
    return Math::IfPositive(p - x, dy, zero);
  }
};

// Calls run(function) with the formula of `f`, whose parameter is `p`.
template <typename Math, typename Run>
inline __attribute__((always_inline)) void WithUnary(UnaryFunction f, float p,
                                                     Run run) {
  switch (f) {
    case UnaryFunction::kNegate:
      return run(NegateFormula<Math>{});
    case UnaryFunction::kExp:
      return run(ExpFormula<Math>{});
    case UnaryFunction::kLog:
      return run(LogFormula<Math>{});
    case UnaryFunction::kSqrt:
      return run(SqrtFormula<Math>{});
    case UnaryFunction::kScale:
      return run(ScaleFormula<Math>{Math::Set(p)});
    case UnaryFunction::kAddScalar:
      return run(AddScalarFormula<Math>{Math::Set(p)});
    case UnaryFunction::kLeakyRelu:
      return run(LeakyReluFormula<Math>{Math::Set(p)});
    case UnaryFunction::kGelu:
      return run(GeluFormula<Math>{});
    case UnaryFunction::kGeluTanh:
      return run(GeluTanhFormula<Math>{});
    case UnaryFunction::kSilu:
      return run(SiluFormula<Math>{});
    case UnaryFunction::kSigmoid:
      return run(SigmoidFormula<Math>{});
    case UnaryFunction::kTanh:
      return run(TanhFormula<Math>{});
    case UnaryFunction::kSquare:
      return run(SquareFormula<Math>{});
    case UnaryFunction::kRsqrt:
      return run(RsqrtFormula<Math>{});
    case UnaryFunction::kPower:
      return run(PowerFormula<Math>{Math::Set(p), Math::Set(p - 1.0f)});
    case UnaryFunction::kAbsolute:
      return run(AbsoluteFormula<Math>{Math::Set(0)});
    case UnaryFunction::kSine:
      return run(SineFormula<Math>{});
    case UnaryFunction::kCosine:
      return run(CosineFormula<Math>{});
    case UnaryFunction::kAtLeast:
      return run(AtLeastFormula<Math>{Math::Set(p), Math::Set(0)});
    case UnaryFunction::kAtMost:
      return run(AtMostFormula<Math>{Math::Set(p), Math::Set(0)});
  }
}

// --- Functions of two numbers ---

struct AddFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return a + b;
  }
};

struct SubtractFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return a - b;
  }
};

struct MultiplyFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return a * b;
  }
};

struct DivideFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return a / b;
  }
};

struct EqualFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return a == b ? N{} + 1.0f : N{};
  }
};

struct KeepFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return b != 0.0f ? a : N{};
  }
};

struct NotEqualFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return a != b ? N{} + 1.0f : N{};
  }
};

struct LessFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return a < b ? N{} + 1.0f : N{};
  }
};

struct LessEqualFormula {
  template <typename N>
  TROUPE_FORMULA N operator()(N a, N b) const {
    return a <= b ? N{} + 1.0f : N{};
  }
};

// Calls run(function) with the formula of `f`.
template <typename Run>
inline __attribute__((always_inline)) void WithBinary(BinaryFunction f,
                                                      Run run) {
  switch (f) {
    case BinaryFunction::kAdd:
      return run(AddFormula{});
    case BinaryFunction::kSubtract:
      return run(SubtractFormula{});
    case BinaryFunction::kMultiply:
      return run(MultiplyFormula{});
    case BinaryFunction::kDivide:
      return run(DivideFormula{});
    case BinaryFunction::kEqual:
      return run(EqualFormula{});
    case BinaryFunction::kKeep:
      return run(KeepFormula{});
    case BinaryFunction::kNotEqual:
      return run(NotEqualFormula{});
    case BinaryFunction::kLess:
      return run(LessFormula{});
    case BinaryFunction::kLessEqual:
      return run(LessEqualFormula{});
  }
}

// Returns whether the comparison `f` of two integers holds.
TROUPE_FORMULA bool Holds(BinaryFunction f, std::int64_t a, std::int64_t b) {
  switch (f) {
    case BinaryFunction::kEqual:
      return a == b;
    case BinaryFunction::kNotEqual:
      return a != b;
    case BinaryFunction::kLess:
      return a < b;
    case BinaryFunction::kLessEqual:
      return a <= b;
    default:
      return false;  // not a comparison
  }
}

}  // namespace
}  // namespace troupe::nn

#undef TROUPE_FORMULA

#endif  // NN_KERNELS_ELEMENT_FORMULAS_H_
