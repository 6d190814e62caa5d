// How a parameter is first filled, the same as torch.nn.init.
//
//   Declare("weight", {64, 3, 7, 7}, Initializer::Uniform(bound));
//   for (Parameter* p : model.Parameters()) {       // before an arena is made
//     if (p->shape.rank() == 4) {
//       p->init = Initializer::KaimingNormal(p->shape, Fan::kOut);
//     }
//   }
//
// Draws are keyed by (seed, full name, element), so they depend on neither
// order nor rank. Weights are [out, in, ...]: fan_in = in * the rest (He et al.
// 2015, arXiv:1502.01852; Glorot and Bengio 2010).

#ifndef NN_AUTOGRAD_INITIALIZER_H_
#define NN_AUTOGRAD_INITIALIZER_H_

#include <cmath>
#include <cstdint>

#include "nn/tensor/shape.h"

namespace troupe::nn {

// Direction in which the variance is kept: that of outputs, or of gradients.
enum class Fan { kIn, kOut };

// Returns the number of inputs that an output of weights [out, in, ...] sums,
// or of outputs that an input reaches. PyTorch defines none for a vector; here
// it is 1.
inline std::int64_t FanOf(const Shape& weight, Fan fan) {
  std::int64_t count = 1;
  for (int axis = 0; axis < weight.rank(); ++axis) {
    const bool other_side = axis == (fan == Fan::kIn ? 0 : 1);
    if (!other_side) count *= weight[axis];
  }
  return weight.rank() < 2 ? 1 : count;
}

// torch.nn.init.calculate_gain.
constexpr double kReluGain = 1.4142135623730951;  // sqrt(2)
constexpr double kTanhGain = 5.0 / 3;
inline double LeakyReluGain(double slope) {
  return std::sqrt(2 / (1 + slope * slope));
}

struct Initializer {
  enum class Kind {
    kConstant,
    kUniform,
    kNormal,
    kIntegers,
    kTruncatedNormal,
  };
  Kind kind = Kind::kConstant;
  double a = 0;  // constant: value; uniform, integers: low; normal: mean
  double b = 0;  // uniform, integers: high; normal: standard deviation
  // Limits of a truncated normal.
  double low = 0, high = 0;
  // Index of the first axis whose elements are zeros instead; -1: none.
  std::int64_t zero_row = -1;

  static Initializer Constant(double value) {
    return {Kind::kConstant, value, 0};
  }
  static Initializer Uniform(double bound) {
    return {Kind::kUniform, -bound, bound};
  }
  // Every integer in [low, high] with equal probability: for tests in exact
  // arithmetic.
  static Initializer Integers(int low, int high) {
    return {Kind::kIntegers, static_cast<double>(low),
            static_cast<double>(high)};
  }
  static Initializer Normal(double mean, double stddev) {
    return {Kind::kNormal, mean, stddev};
  }
  // Normal distribution cut to [low, high], which are numbers like the mean,
  // not multiples of stddev, as in trunc_normal_.
  static Initializer TruncatedNormal(double mean, double stddev,
                                     double low = -2, double high = 2) {
    return {Kind::kTruncatedNormal, mean, stddev, low, high};
  }

  // kaiming_normal_ and kaiming_uniform_: standard deviation gain / sqrt(fan).
  static Initializer KaimingNormal(const Shape& weight, Fan fan = Fan::kIn,
                                   double gain = kReluGain) {
    return Normal(0, gain / std::sqrt(FanOf(weight, fan)));
  }
  static Initializer KaimingUniform(const Shape& weight, Fan fan = Fan::kIn,
                                    double gain = kReluGain) {
    return Uniform(gain * std::sqrt(3.0 / FanOf(weight, fan)));
  }
  // xavier_normal_ and xavier_uniform_: gain sqrt(2 / (fan_in + fan_out)).
  static Initializer XavierNormal(const Shape& weight, double gain = 1) {
    return Normal(0, gain * std::sqrt(2.0 / BothFans(weight)));
  }
  static Initializer XavierUniform(const Shape& weight, double gain = 1) {
    return Uniform(gain * std::sqrt(6.0 / BothFans(weight)));
  }

 private:
  static double BothFans(const Shape& weight) {
    return static_cast<double>(FanOf(weight, Fan::kIn) +
                               FanOf(weight, Fan::kOut));
  }
};

}  // namespace troupe::nn

#endif  // NN_AUTOGRAD_INITIALIZER_H_
