#include "nn/kernels/rotary.h"

#include <algorithm>
#include <cmath>

#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

// Distance between positions whose sine is computed; the others are rotated
// from there, in f64. These positions are multiples of it, so that the angle of
// a position does not depend on where a sample begins.
constexpr std::int64_t kExactEvery = 32;

// Fills cosines[P, pairs] and sines[P, pairs] for the angles of P positions.
void FillAngles(const RotaryRule& rule, std::int64_t P, float* cosines,
                float* sines) {
  const std::int64_t pairs = rule.width / 2;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double step = std::pow(rule.base, -2.0 * i / rule.width);
    const double step_c = std::cos(step), step_s = std::sin(step);
    double c = 1, s = 0;
    for (std::int64_t at = rule.first / kExactEvery * kExactEvery;
         at < rule.first + P; ++at) {
      if (at % kExactEvery == 0) {
        c = std::cos(at * step);
        s = std::sin(at * step);
      }
      if (at >= rule.first) {
        cosines[(at - rule.first) * pairs + i] = static_cast<float>(c);
        sines[(at - rule.first) * pairs + i] =
            static_cast<float>(rule.inverse ? -s : s);
      }
      const double next = c * step_c - s * step_s;
      s = s * step_c + c * step_s;
      c = next;
    }
  }
}

absl::Status Rotary(CpuDevice& cpu, const RotaryRule& rule, In x, Tensor& y) {
  const std::int64_t N = x.dim(0), P = x.dim(1), H = x.dim(2), D = x.dim(3);
  const std::int64_t pairs = rule.width / 2;
  if (x.numel() == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(float* const cosines, cpu.Scratch(2 * P * pairs));
  float* const sines = cosines + P * pairs;
  FillAngles(rule, P, cosines, sines);
  const auto rotate =
      rule.interleaved ? cpu.loops().rotate_pairs : cpu.loops().rotate_halves;
  const float* from = x.data<float>();
  float* to = y.data<float>();
  for (std::int64_t row = 0; row < N * P; ++row) {
    const std::int64_t angle = row % P * pairs;
    for (std::int64_t h = 0; h < H; ++h, from += D, to += D) {
      std::int64_t turned = 0;
      if (h < rule.heads) {
        rotate(pairs, cosines + angle, sines + angle, from, to);
        turned = rule.width;
      }
      if (from != to) std::copy(from + turned, from + D, to + turned);
    }
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, RotaryKernels& ops) {
  BindF32<Rotary>(cpu, ops.Rotary);
}

}  // namespace troupe::nn::cpu
