// Functions of a vector of f32: exponential, logarithm, power, tanh, sigmoid,
// sine, cosine, and the distribution function of the normal distribution.
//
//   Vec y = Times(x, Sigmoid(x));                            // SiLU
//   const NormalValues normal = NormalOf(x);
//   Vec dx = Times(dy, Fma(x, normal.density, normal.distribution));
//
// A result differs from the exact one by at most four units in the last place
// for every x (functions_test.cc), for the normal distribution by six; results
// below 2^-120 lose bits. NaN stays NaN. Power has its own note.
// The coefficients of Exp, Log, Tanh, Sine and Cosine are those of Cephes
// (Moshier, 1992).

#ifndef NN_KERNELS_CPU_FUNCTIONS_H_
#define NN_KERNELS_CPU_FUNCTIONS_H_

#include <cstdint>

#include "nn/kernels/cpu/simd.h"

namespace troupe::nn::cpu {
namespace {

constexpr float kInfinity = __builtin_inff();

// An integer n and a rest with e^x = e^rest 2^n; n is the nearest integer to
// x / ln 2. `shifted` = 1.5 * 2^23 + n is the argument of PowerOfTwo().
struct Exponent {
  Vec shifted, n, rest;
};

constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: adding it rounds

TROUPE_INLINE Exponent ExponentOf(Vec x) {
  const Vec shift = Set(kShift);
  const Vec shifted = Fma(x, Set(1.44269504f), shift);
  const Vec n = Minus(shifted, shift);
  const Vec rest = Fma(n, Set(-0.693359375f), x);
  return {shifted, n, Fma(n, Set(2.12194440e-4f), rest)};
}

// Returns e^r for |r| <= ln 2 / 2.
TROUPE_INLINE Vec ExpOfRest(Vec r) {
  Vec y = Set(1.9875691500e-4f);
  y = Fma(y, r, Set(1.3981999507e-3f));
  y = Fma(y, r, Set(8.3334519073e-3f));
  y = Fma(y, r, Set(4.1665795894e-2f));
  y = Fma(y, r, Set(1.6666665459e-1f));
  y = Fma(y, r, Set(5.0000001201e-1f));
  return Fma(y, Times(r, r), Plus(r, Set(1.0f)));
}

// Returns e^x for x <= 0, and 0 below -87.
TROUPE_INLINE Vec ExpOfNegative(Vec x) {
  const Vec least = Set(-87.0f);
  const Exponent e = ExponentOf(MaxOrSecond(least, x));
  const Vec y = Times(ExpOfRest(e.rest), PowerOfTwo(e.shifted));
  return Choose(GreaterOrNan(x, least), y, Zero());
}

// Returns e^(x + low), where `low` is the rounding error of x, small beside it.
TROUPE_INLINE Vec ExpOfSum(Vec x, Vec low) {
  const Vec most = Set(89.0f);  // e^89 is infinite, e^-104 is 0
  x = MaxOrSecond(Set(-104.0f), Choose(Greater(x, most), most, x));
  const Exponent e = ExponentOf(x);
  const Vec y = ExpOfRest(Plus(e.rest, low));
  // In two steps: 2^n itself may be infinite or 0 where e^x is not.
  const Vec half = Fma(e.n, Set(0.5f), Set(kShift));
  const Vec other = Minus(e.shifted, Minus(half, Set(kShift)));
  return Times(Times(y, PowerOfTwo(half)), PowerOfTwo(other));
}

TROUPE_INLINE Vec Exp(Vec x) { return ExpOfSum(x, Zero()); }

// Return |x|, and the sign bit of x with the other bits of `magnitude`.
TROUPE_INLINE Vec Magnitude(Vec x) {
  using Ints = Vector<std::int32_t>;
  return BitCast<Vec>(BitCast<Ints>(x) & 0x7fffffff);
}
TROUPE_INLINE Vec WithSignOf(Vec x, Vec magnitude) {
  using Ints = Vector<std::int32_t>;
  const Ints sign = BitCast<Ints>(x) & static_cast<std::int32_t>(0x80000000);
  return BitCast<Vec>(BitCast<Ints>(magnitude) | sign);
}

// ln x = 0.693359375 e + rest, for an integer e; the product is exact.
struct Logarithm {
  Vec e, rest;
};
constexpr float kLogOfTwo = 0.693359375f;

// For finite x > 0.
TROUPE_INLINE Logarithm LogarithmOf(Vec x) {
  using Ints = Vector<std::int32_t>;
  const Truth tiny = Greater(Set(0x1p-126f), x);
  x = Choose(tiny, Times(x, Set(0x1p23f)), x);
  // x = m 2^e, with m from sqrt(1/2) to sqrt(2).
  const Ints bits = BitCast<Ints>(x);
  const Ints exponent = (bits - 0x3f3504f3) >> 23;
  const Vec m = BitCast<Vec>(bits - (exponent << 23));
  Vec e = __builtin_convertvector(exponent, Vec);
  e = Choose(tiny, Minus(e, Set(23.0f)), e);
  const Vec r = Minus(m, Set(1.0f));
  Vec y = Set(7.0376836292e-2f);
  y = Fma(y, r, Set(-1.1514610310e-1f));
  y = Fma(y, r, Set(1.1676998740e-1f));
  y = Fma(y, r, Set(-1.2420140846e-1f));
  y = Fma(y, r, Set(1.4249322787e-1f));
  y = Fma(y, r, Set(-1.6668057665e-1f));
  y = Fma(y, r, Set(2.0000714765e-1f));
  y = Fma(y, r, Set(-2.4999993993e-1f));
  y = Fma(y, r, Set(3.3333331174e-1f));
  const Vec square = Times(r, r);
  y = Times(Times(y, r), square);
  y = Fma(e, Set(-2.12194440e-4f), y);
  y = Fma(square, Set(-0.5f), y);
  return {e, Plus(r, y)};
}

// Returns ln x for finite x > 0.
TROUPE_INLINE Vec LogOfPositive(Vec x) {
  const Logarithm log = LogarithmOf(x);
  return Fma(log.e, Set(kLogOfTwo), log.rest);
}

// Returns ln x: minus infinity at 0, NaN below.
TROUPE_INLINE Vec Log(Vec x) {
  // With the sign bit, the integers would overflow.
  Vec y = LogOfPositive(Magnitude(x));
  y = Choose(GreaterOrNan(x, Zero()), y, Set(-kInfinity));
  y = Choose(Greater(Zero(), x), Set(__builtin_nanf("")), y);
  return Choose(Greater(Set(kInfinity), x), y, x);
}

// Returns what the rounding of the product a b = `product` has lost.
TROUPE_INLINE Vec LostByProduct(Vec a, Vec b, Vec product) {
  Vec lost;
  for (int i = 0; i < kLanes; ++i) {
    lost[i] = static_cast<float>(static_cast<double>(a[i]) * b[i] - product[i]);
  }
  return lost;
}

// Returns x^p; all lanes of p are equal. p ln x is kept in two parts, since e^
// amplifies its error: within four units of the last place for |p| <= 4, and
// |p| units beyond.
TROUPE_INLINE Vec Power(Vec x, Vec p) {
  const float power = p[0];
  const bool whole = power == __builtin_truncf(power);
  const float half = 0.5f * power;
  const bool odd = whole && half != __builtin_truncf(half);
  const Vec magnitude = Magnitude(x), infinity = Set(kInfinity);
  const Logarithm log = LogarithmOf(magnitude);
  const Vec big = Times(log.e, Set(kLogOfTwo));
  const Vec product = Times(p, big);
  const Vec lost = LostByProduct(p, big, product);
  const Vec rest = Times(p, log.rest);
  const Vec rest_lost = LostByProduct(p, log.rest, rest);
  const Vec sum = Plus(product, rest);
  // The error of the sum (Knuth's two-sum).
  const Vec part = Minus(sum, product);
  const Vec error = Plus(Minus(product, Minus(sum, part)), Minus(rest, part));
  Vec y = ExpOfSum(sum, Plus(error, Plus(lost, rest_lost)));
  const Vec at_zero = Set(power > 0 ? 0.0f : kInfinity);
  const Vec at_infinity = Set(power > 0 ? kInfinity : 0.0f);
  y = Choose(Greater(magnitude, Zero()), y, at_zero);
  y = Choose(Greater(infinity, magnitude), y, at_infinity);
  if (odd) {
    y = WithSignOf(x, y);
  } else if (!whole) {
    const Vec finite = Choose(Greater(infinity, magnitude), x, Zero());
    y = Choose(Greater(Zero(), finite), Set(__builtin_nanf("")), y);
  }
  y = Choose(IsNan(x), x, y);
  return power == 0 ? Set(1.0f) : y;
}

// An angle x = rest + quadrant pi / 2, with |rest| <= pi / 4 for |x| up to
// kAngleMax.
struct Angle {
  Vec rest;
  Vector<std::int32_t> quadrant;
};
constexpr float kAngleMax = 1048576.0f;

// In f64, lane by lane: f32 has too few bits for the difference.
TROUPE_INLINE Angle AngleOf(Vec x) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  Angle angle;
  for (int i = 0; i < kLanes; ++i) {
    const double wide = x[i];
    const double shifted = wide * 0.63661977236758134 + kRound;
    const double n = shifted - kRound;
    const double rest = wide - n * 1.5707963267948966;
    angle.rest[i] = static_cast<float>(rest - n * 6.123233995736766e-17);
    std::int64_t bits;
    __builtin_memcpy(&bits, &shifted, sizeof(bits));
    angle.quadrant[i] = static_cast<std::int32_t>(bits & 3);
  }
  return angle;
}

TROUPE_INLINE Vec SineOfRest(Vec r) {
  const Vec square = Times(r, r);
  Vec y = Set(-1.9515295891e-4f);
  y = Fma(y, square, Set(8.3321608736e-3f));
  y = Fma(y, square, Set(-1.6666654611e-1f));
  return Fma(Times(y, square), r, r);
}

TROUPE_INLINE Vec CosineOfRest(Vec r) {
  const Vec square = Times(r, r);
  Vec y = Set(2.443315711809948e-5f);
  y = Fma(y, square, Set(-1.388731625493765e-3f));
  y = Fma(y, square, Set(4.166664568298827e-2f));
  return Plus(Fma(square, Set(-0.5f), Set(1.0f)),
              Times(y, Times(square, square)));
}

// Returns the sine of x, or of x + pi / 2 for `quarters` = 1. `exact` computes
// the lanes whose angles are too large for AngleOf().
template <typename Exact>
TROUPE_INLINE Vec SineOf(Vec x, std::int32_t quarters, Exact exact) {
  using Ints = Vector<std::int32_t>;
  const Angle angle = AngleOf(x);
  const Ints quadrant = angle.quadrant + quarters;
  const Vec sine = SineOfRest(angle.rest), cosine = CosineOfRest(angle.rest);
  const Ints swaps = (quadrant & 1) != 0;
  const Vec y = swaps ? cosine : sine;
  const Ints sign = (quadrant & 2) << 30;
  Vec signed_y = BitCast<Vec>(BitCast<Ints>(y) ^ sign);
  for (int i = 0; i < kLanes; ++i) {
    if (__builtin_fabsf(x[i]) <= kAngleMax) continue;
    signed_y[i] = static_cast<float>(exact(static_cast<double>(x[i])));
  }
  return signed_y;
}

TROUPE_INLINE Vec Sine(Vec x) {
  return SineOf(x, 0, [](double angle) { return __builtin_sin(angle); });
}
TROUPE_INLINE Vec Cosine(Vec x) {
  return SineOf(x, 1, [](double angle) { return __builtin_cos(angle); });
}

TROUPE_INLINE Vec Tanh(Vec x) {
  const Vec one = Set(1.0f), magnitude = Magnitude(x);
  const Vec power = Exp(Plus(magnitude, magnitude));
  const Vec far = Minus(one, Over(Set(2.0f), Plus(power, one)));
  const Vec square = Times(x, x);
  Vec y = Set(-5.70498872745e-3f);
  y = Fma(y, square, Set(2.06390887954e-2f));
  y = Fma(y, square, Set(-5.37397155531e-2f));
  y = Fma(y, square, Set(1.33314422036e-1f));
  y = Fma(y, square, Set(-3.33332819422e-1f));
  const Vec near = Fma(Times(y, square), x, x);
  return Choose(Greater(magnitude, Set(0.625f)), WithSignOf(x, far), near);
}

// Returns 1 / (1 + e^-x), computed from e^-|x|, which does not overflow.
TROUPE_INLINE Vec Sigmoid(Vec x) {
  const Vec one = Set(1.0f);
  const Vec power = Exp(Minus(Zero(), Magnitude(x)));
  return Over(Choose(Greater(Zero(), x), power, one), Plus(one, power));
}

// The normal distribution at x: P(X <= x), and its derivative.
struct NormalValues {
  Vec distribution, density;
};

// With u = |x|: P(X <= -u) = e^(-u^2 / 2) p((u - 4) / (u + 4)) / (1 + 1.5 u),
// where p is a minimax polynomial up to u = 15, above which f32 has 0. The
// square is exact in two parts, since e^ amplifies its error; nothing cancels.
TROUPE_INLINE NormalValues NormalOf(Vec x) {
  using Ints = Vector<std::int32_t>;
  const Vec most = Set(15.0f), magnitude = Magnitude(x);
  const Vec u = Choose(Greater(magnitude, most), most, magnitude);
  // The upper 12 bits of u, rounded to nearest.
  const Vec high = BitCast<Vec>((BitCast<Ints>(u) + 2048) & -4096);
  const Vec low = Times(Minus(high, u), Plus(high, u));
  const Vec power =
      ExpOfSum(Times(Times(high, high), Set(-0.5f)), Times(low, Set(0.5f)));
  const Vec q = Over(Minus(u, Set(4.0f)), Plus(u, Set(4.0f)));
  Vec p = Set(-1.153648045e-4f);
  p = Fma(p, q, Set(-7.259552513e-5f));
  p = Fma(p, q, Set(1.122899004e-3f));
  p = Fma(p, q, Set(-7.740678266e-4f));
  p = Fma(p, q, Set(-7.755348459e-3f));
  p = Fma(p, q, Set(3.115662746e-2f));
  p = Fma(p, q, Set(-6.372927874e-2f));
  p = Fma(p, q, Set(7.875359803e-2f));
  p = Fma(p, q, Set(-4.119016603e-2f));
  p = Fma(p, q, Set(-5.985633656e-2f));
  p = Fma(p, q, Set(6.608744860e-1f));
  const Vec one = Set(1.0f);
  const Vec tail = Over(Times(power, p), Fma(u, Set(1.5f), one));
  return {Choose(Greater(x, Zero()), Minus(one, tail), tail),
          Times(power, Set(0.398942280f))};
}

}  // namespace
}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_FUNCTIONS_H_
