#include <cmath>

#include "nn/kernels/reference/reference_ops.h"

// Letters: the same as in nn/kernels/rotary.h.

namespace troupe::nn::reference {
namespace {

// Rotates one head at one position.
template <typename T>
void TurnHead(const RotaryRule& rule, double position, const T* x, T* y) {
  const std::int64_t pairs = rule.width / 2;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const std::int64_t a = rule.interleaved ? 2 * i : i;
    const std::int64_t b = rule.interleaved ? 2 * i + 1 : i + pairs;
    const double angle = position * std::pow(rule.base, -2.0 * i / rule.width);
    const double sine = rule.inverse ? -std::sin(angle) : std::sin(angle);
    const double cosine = std::cos(angle);
    const double from_a = Load(x[a]), from_b = Load(x[b]);
    y[a] = Store<T>(from_a * cosine - from_b * sine);
    y[b] = Store<T>(from_b * cosine + from_a * sine);
  }
}

struct Rotary {
  template <typename T>
  static absl::Status Run(const RotaryRule& rule, In x, Tensor& y) {
    const std::int64_t N = x.dim(0), P = x.dim(1), H = x.dim(2), D = x.dim(3);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for (std::int64_t row = 0; row < N * P * H; ++row, from += D, to += D) {
      std::int64_t turned = 0;
      if (row % H < rule.heads) {
        const std::int64_t t = row / H % P;
        TurnHead(rule, static_cast<double>(rule.first + t), from, to);
        turned = rule.width;
      }
      for (std::int64_t d = turned; d < D; ++d) to[d] = from[d];
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(RotaryKernels& ops) {
  BindFloating<Rotary>(ops.Rotary);
}

}  // namespace troupe::nn::reference
