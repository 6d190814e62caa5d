// The functions that element-wise kernels have by name.
//
//   status = kernels.UnaryForward(UnaryFunction::kSilu, 0, x, y);
//   status = kernels.Binary(BinaryFunction::kMultiply, a, b, y);
//   status = kernels.PairLoss({PairLossFunction::kHuber, delta, /*q=*/1},
//                             prediction, target, stats, dprediction);
//
// The formulas of UnaryFunction and BinaryFunction are in element_formulas.h,
// those of PairLossFunction in cpu/loss_loops.h and cuda/pair_losses.cu; the
// oracle, nn/kernels/reference, has its own. This header has only enumerations
// and their properties, since loops that are compiled once for each instruction
// set include it.

#ifndef NN_KERNELS_ELEMENT_FUNCTIONS_H_
#define NN_KERNELS_ELEMENT_FUNCTIONS_H_

#include <cstdint>

namespace troupe::nn {

// y = f(x), with one number p for functions with a parameter. Sigma is sigmoid,
// Phi the distribution function of the normal distribution.
enum class UnaryFunction : std::uint8_t {
  kNegate,     // -x
  kExp,        // e^x
  kLog,        // ln x
  kSqrt,       // the square root of x
  kScale,      // p x
  kAddScalar,  // x + p
  kLeakyRelu,  // x > 0 ? x : p x
  kGelu,       // x Phi(x)
  kGeluTanh,   // x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2
  kSilu,       // x Sigma(x)
  kSigmoid,    // 1 / (1 + e^-x)
  kTanh,       //
  kSquare,     // x^2
  kRsqrt,      // 1 / the square root of x
  kPower,      // x^p; NaN for x < 0 unless p is an integer
  kAbsolute,   // |x|, whose derivative at 0 is 0
  kSine,       //
  kCosine,     //
  kAtLeast,    // the larger of x and p; the derivative at p is 0
  kAtMost,     // the smaller of x and p; the derivative at p is 0
};

// Whether f' is computed from y = f(x), not from x.
constexpr bool SavesOutput(UnaryFunction f) {
  return f == UnaryFunction::kExp || f == UnaryFunction::kSqrt ||
         f == UnaryFunction::kSigmoid || f == UnaryFunction::kTanh ||
         f == UnaryFunction::kRsqrt;
}

// y = f(a, b).
enum class BinaryFunction : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kEqual,     // a == b ? 1 : 0
  kKeep,      // b != 0 ? a : 0: a mask b, which removes infinities and NaN, too
  kNotEqual,  // a != b ? 1 : 0, also if either is a NaN
  kLess,      // a < b ? 1 : 0
  kLessEqual,  // a <= b ? 1 : 0
};

// The loss of a pair of elements, a prediction x and its target t, with numbers
// p and q for functions with parameters; e = x - t.
enum class PairLossFunction : std::uint8_t {
  kSquaredError,   // e^2
  kAbsoluteError,  // |e|
  kHuber,          // q (|e| <= p ? e^2 / 2 : p (|e| - p / 2))
  kBceWithLogits,  // (1 - t) x + (1 + (p - 1) t) log(1 + e^-x), t from 0 to 1
};

// A function with its parameters.
struct PairLossRule {
  PairLossFunction function;
  double p = 0;
  double q = 0;
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_ELEMENT_FUNCTIONS_H_
