// The functions that element-wise kernels have by name.
//
//   status = kernels.UnaryForward(UnaryFunction::kSilu, 0, x, y);
//   status = kernels.Binary(BinaryFunction::kMultiply, a, b, y);
//
// Nothing but enumerations: loops that are compiled once for each instruction
// set include this header.

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
};

// y = f(a, b).
enum class BinaryFunction : std::uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_ELEMENT_FUNCTIONS_H_
