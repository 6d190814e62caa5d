#include "nn/kernels/unary.h"

#include <cmath>

#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Cumulative distribution function of the normal distribution, and its density.
double NormalDistribution(double x) {
  return 0.5 * std::erfc(-x * std::sqrt(0.5));
}
double NormalDensity(double x) {
  return std::exp(-0.5 * x * x) * 0.3989422804014327;
}

// Returns 2 sqrt(2/pi) (x + 0.044715 x^3), whose sigmoid is in the tanh form of
// GELU, and its derivative.
double GeluArgument(double x) {
  return 1.5957691216057308 * (x + 0.044715 * x * x * x);
}
double GeluArgumentSlope(double x) {
  return 1.5957691216057308 * (1 + 3 * 0.044715 * x * x);
}

double ValueAt(UnaryFunction f, double p, double x) {
  switch (f) {
    case UnaryFunction::kNegate:
      return -x;
    case UnaryFunction::kExp:
      return std::exp(x);
    case UnaryFunction::kLog:
      return std::log(x);
    case UnaryFunction::kSqrt:
      return std::sqrt(x);
    case UnaryFunction::kScale:
      return p * x;
    case UnaryFunction::kAddScalar:
      return x + p;
    case UnaryFunction::kLeakyRelu:
      return x > 0 ? x : p * x;
    case UnaryFunction::kGelu:
      return x * NormalDistribution(x);
    case UnaryFunction::kGeluTanh:
      return x * Sigmoid(GeluArgument(x));
    case UnaryFunction::kSilu:
      return x * Sigmoid(x);
    case UnaryFunction::kSigmoid:
      return Sigmoid(x);
    case UnaryFunction::kTanh:
      return std::tanh(x);
    case UnaryFunction::kSquare:
      return x * x;
    case UnaryFunction::kRsqrt:
      return 1 / std::sqrt(x);
    case UnaryFunction::kPower:
      return std::pow(x, p);
    case UnaryFunction::kAbsolute:
      return std::fabs(x);
    case UnaryFunction::kSine:
      return std::sin(x);
    case UnaryFunction::kCosine:
      return std::cos(x);
    case UnaryFunction::kAtLeast:
      return x < p ? p : x;
    case UnaryFunction::kAtMost:
      return x > p ? p : x;
  }
  return std::nan("");
}

// `saved` is y if SavesOutput(f), else x.
double SlopeAt(UnaryFunction f, double p, double saved) {
  const double x = saved, y = saved;
  switch (f) {
    case UnaryFunction::kNegate:
      return -1;
    case UnaryFunction::kExp:
      return y;
    case UnaryFunction::kLog:
      return 1 / x;
    case UnaryFunction::kSqrt:
      return 0.5 / y;
    case UnaryFunction::kScale:
      return p;
    case UnaryFunction::kAddScalar:
      return 1;
    case UnaryFunction::kLeakyRelu:
      return x > 0 ? 1 : p;
    case UnaryFunction::kGelu:
      return NormalDistribution(x) + x * NormalDensity(x);
    case UnaryFunction::kGeluTanh: {
      const double gate = Sigmoid(GeluArgument(x));
      return gate * (1 + x * GeluArgumentSlope(x) * (1 - gate));
    }
    case UnaryFunction::kSilu: {
      const double gate = Sigmoid(x);
      return gate * (1 + x * (1 - gate));
    }
    case UnaryFunction::kSigmoid:
      return y * (1 - y);
    case UnaryFunction::kTanh:
      return (1 - y) * (1 + y);
    case UnaryFunction::kSquare:
      return 2 * x;
    case UnaryFunction::kRsqrt:
      return -0.5 * y * y * y;
    case UnaryFunction::kPower:
      return p * std::pow(x, p - 1);
    case UnaryFunction::kAbsolute:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case UnaryFunction::kSine:
      return std::cos(x);
    case UnaryFunction::kCosine:
      return -std::sin(x);
    case UnaryFunction::kAtLeast:
      return x > p ? 1 : 0;
    case UnaryFunction::kAtMost:
      return x < p ? 1 : 0;
  }
  return std::nan("");
}

struct UnaryForward {
  template <typename T>
  static absl::Status Run(UnaryFunction f, double p, In x, Tensor& y) {
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      to[i] = Store<T>(ValueAt(f, p, Load(from[i])));
    }
    return absl::OkStatus();
  }
};

struct UnaryBackward {
  template <typename T>
  static absl::Status Run(UnaryFunction f, double p, In saved, In dy,
                          Tensor& dx) {
    const T* at = saved.data<T>();
    const T* from = dy.data<T>();
    T* to = dx.data<T>();
    for (std::int64_t i = 0; i < dy.numel(); ++i) {
      to[i] = Store<T>(Load(from[i]) * SlopeAt(f, p, Load(at[i])));
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(UnaryKernels& ops) {
  BindFloating<UnaryForward>(ops.UnaryForward);
  BindFloating<UnaryBackward>(ops.UnaryBackward);
}

}  // namespace troupe::nn::reference
