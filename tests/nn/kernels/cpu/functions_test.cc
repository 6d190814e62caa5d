// Compares the functions of functions.h with f64: for numbers of every size,
// each result differs by a few units in its last place.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/cpu_isa.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/loops.h"

namespace troupe::nn::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Returns the f32 of every 4099th bit pattern: both signs, with zeros, tiny
// numbers, infinities and NaN.
std::vector<float> NumbersOfEverySize() {
  std::vector<float> numbers = {0.0f,          -0.0f,  kInf,     -kInf,
                                std::nanf(""), 0.625f, 88.7228f, -87.3f,
                                -103.9f,       1e-45f};
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099) {
    const auto word = static_cast<std::uint32_t>(bits);
    float number;
    std::memcpy(&number, &word, sizeof(number));
    numbers.push_back(number);
  }
  return numbers;
}

// Returns |got - want| in units of the last place of `want` as an f32, or of
// 2^-120 if that is larger, since intermediate results of tiny numbers lose
// bits.
double UnitsApart(float got, double want) {
  const auto rounded = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : kInf;
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : kInf;
  const float magnitude = std::max(std::fabs(rounded), 0x1p-120f);
  const double unit =
      static_cast<double>(std::nextafter(magnitude, kInf)) - magnitude;
  return std::fabs(got - want) / unit;
}

std::vector<const Loops*> AllLoops() {
  std::vector<const Loops*> sets = {&PlainLoops()};
  if (base::BestCpuIsa() >= base::CpuIsa::kAvx2) sets.push_back(&Avx2Loops());
  if (base::BestCpuIsa() >= base::CpuIsa::kAvx512) {
    sets.push_back(&Avx512Loops());
  }
  return sets;
}

void ExpectNear(UnaryFunction f, const std::function<double(double)>& exact,
                double units, float parameter = 0) {
  const std::vector<float> x = NumbersOfEverySize();
  for (const Loops* loops : AllLoops()) {
    std::vector<float> y(x.size());
    loops->unary_forward(f, parameter, static_cast<std::int64_t>(x.size()),
                         x.data(), y.data());
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double apart = UnitsApart(y[i], exact(x[i]));
      if (apart > worst) {
        worst = apart;
        at = i;
      }
    }
    EXPECT_LE(worst, units) << loops->name << " at " << x[at] << ": " << y[at]
                            << ", not " << exact(x[at]);
  }
}

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Functions, Exp) {
  ExpectNear(
      UnaryFunction::kExp, [](double x) { return std::exp(x); }, 3);
}

TEST(Functions, Log) {
  ExpectNear(
      UnaryFunction::kLog, [](double x) { return std::log(x); }, 3);
}

TEST(Functions, Tanh) {
  ExpectNear(
      UnaryFunction::kTanh, [](double x) { return std::tanh(x); }, 3);
}

TEST(Functions, Sqrt) {
  ExpectNear(
      UnaryFunction::kSqrt, [](double x) { return std::sqrt(x); }, 0.5);
}

TEST(Functions, Rsqrt) {
  ExpectNear(
      UnaryFunction::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 2);
}

// Beyond 2^20 the C library computes them.
TEST(Functions, SineAndCosine) {
  ExpectNear(
      UnaryFunction::kSine, [](double x) { return std::sin(x); }, 2);
  ExpectNear(
      UnaryFunction::kCosine, [](double x) { return std::cos(x); }, 2);
}

TEST(Functions, Power) {
  for (const float p : {0.0f, 0.1f, 1.0f, 2.5f, 3.0f, 4.0f, -0.25f, -1.0f,
                        -1.5f, 7.3f, 30.0f}) {
    SCOPED_TRACE(p);
    ExpectNear(
        UnaryFunction::kPower,
        [p](double x) { return std::pow(x, static_cast<double>(p)); },
        std::max(4.0f, p), p);
  }
}

TEST(Functions, Sigmoid) { ExpectNear(UnaryFunction::kSigmoid, Sigmoid, 4); }

// One unit more for the product with x.
TEST(Functions, Silu) {
  ExpectNear(
      UnaryFunction::kSilu, [](double x) { return x * Sigmoid(x); }, 5);
}

TEST(Functions, Gelu) {
  ExpectNear(
      UnaryFunction::kGelu,
      [](double x) { return x * 0.5 * std::erfc(-x * std::sqrt(0.5)); }, 7);
}

}  // namespace
}  // namespace troupe::nn::cpu
