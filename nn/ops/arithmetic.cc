#include "nn/ops/arithmetic.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "nn/ops/binary.h"
#include "nn/ops/unary.h"

namespace troupe::nn::ops {
namespace {

// Returns f(a, b) of operands that broadcast, in new memory.
absl::StatusOr<Tensor> Apply(Kernels& kernels, BinaryFunction f,
                             const Tensor& a, const Tensor& b) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor y, Tensor::Create(*BroadcastShape(a.shape(), b.shape()), a.dtype(),
                               kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(kernels.Binary(f, a, b, y));
  return y;
}

// Computes -x, in the memory of x.
absl::Status Negate(Kernels& kernels, Tensor& x) {
  return kernels.UnaryForward(UnaryFunction::kNegate, 0, x, x);
}

class SubNode final : public Node {
 public:
  SubNode(const Shape& a, const Shape& b) : a_(a), b_(b) {}
  const char* name() const override { return "sub"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    if (wanted[0]) {
      TROUPE_ASSIGN_OR_RETURN(dx[0], SumTo(kernels, dy, a_));
    }
    if (!wanted[1]) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const Tensor sums, SumTo(kernels, dy, b_));
    TROUPE_ASSIGN_OR_RETURN(
        dx[1], Tensor::Create(b_, dy.dtype(), kernels.allocator()));
    return kernels.UnaryForward(UnaryFunction::kNegate, 0, sums, dx[1]);
  }

 private:
  const Shape a_, b_;
};

class MulNode final : public Node {
 public:
  MulNode(Tensor a, Tensor b) : factors_{std::move(a), std::move(b)} {}
  const char* name() const override { return "mul"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    for (int i = 0; i < 2; ++i) {
      if (!wanted[i]) continue;
      TROUPE_ASSIGN_OR_RETURN(
          const Tensor product,
          Apply(kernels, BinaryFunction::kMultiply, dy, factors_[1 - i]));
      TROUPE_ASSIGN_OR_RETURN(dx[i],
                              SumTo(kernels, product, factors_[i].shape()));
    }
    return absl::OkStatus();
  }

 private:
  const Tensor factors_[2];
};

// da = dy / b, db = -(dy / b) y, each summed over the axes that were repeated.
class DivNode final : public Node {
 public:
  DivNode(const Shape& a, Tensor b, Tensor y)
      : a_(a), b_(std::move(b)), y_(std::move(y)) {}
  const char* name() const override { return "div"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(const Tensor quotient,
                            Apply(kernels, BinaryFunction::kDivide, dy, b_));
    if (wanted[0]) {
      TROUPE_ASSIGN_OR_RETURN(dx[0], SumTo(kernels, quotient, a_));
    }
    if (!wanted[1]) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(
        const Tensor product,
        Apply(kernels, BinaryFunction::kMultiply, quotient, y_));
    TROUPE_ASSIGN_OR_RETURN(dx[1], SumTo(kernels, product, b_.shape()));
    return Negate(kernels, dx[1]);
  }

 private:
  const Shape a_;
  const Tensor b_, y_;
};

}  // namespace

Tensor Sub(Context& ctx, const Tensor& a, const Tensor& b) {
  return Binary(ctx, "sub", BinaryFunction::kSubtract, a, b,
                [&](const Tensor&) {
                  return std::make_unique<SubNode>(a.shape(), b.shape());
                });
}

Tensor Mul(Context& ctx, const Tensor& a, const Tensor& b) {
  return Binary(ctx, "mul", BinaryFunction::kMultiply, a, b,
                [&](const Tensor&) { return std::make_unique<MulNode>(a, b); });
}

Tensor Div(Context& ctx, const Tensor& a, const Tensor& b) {
  return Binary(ctx, "div", BinaryFunction::kDivide, a, b,
                [&](const Tensor& y) {
                  return std::make_unique<DivNode>(a.shape(), b, y);
                });
}

Tensor Neg(Context& ctx, const Tensor& x) {
  return Unary(ctx, "neg", UnaryFunction::kNegate, 0, x);
}

Tensor Exp(Context& ctx, const Tensor& x) {
  return Unary(ctx, "exp", UnaryFunction::kExp, 0, x);
}

Tensor Log(Context& ctx, const Tensor& x) {
  return Unary(ctx, "log", UnaryFunction::kLog, 0, x);
}

Tensor Sqrt(Context& ctx, const Tensor& x) {
  return Unary(ctx, "sqrt", UnaryFunction::kSqrt, 0, x);
}

Tensor Square(Context& ctx, const Tensor& x) {
  return Unary(ctx, "square", UnaryFunction::kSquare, 0, x);
}

Tensor Rsqrt(Context& ctx, const Tensor& x) {
  return Unary(ctx, "rsqrt", UnaryFunction::kRsqrt, 0, x);
}

Tensor Abs(Context& ctx, const Tensor& x) {
  return Unary(ctx, "abs", UnaryFunction::kAbsolute, 0, x);
}

Tensor Sin(Context& ctx, const Tensor& x) {
  return Unary(ctx, "sin", UnaryFunction::kSine, 0, x);
}

Tensor Cos(Context& ctx, const Tensor& x) {
  return Unary(ctx, "cos", UnaryFunction::kCosine, 0, x);
}

Tensor Pow(Context& ctx, const Tensor& x, double p) {
  if (p == 2) return Square(ctx, x);
  if (p == 0.5) return Sqrt(ctx, x);
  if (p == -0.5) return Rsqrt(ctx, x);
  // 0 x^-1 in the derivative would be NaN at 0.
  const Tensor& base = p == 0 ? x.Detached() : x;
  return Unary(ctx, "pow", UnaryFunction::kPower, p, base);
}

Tensor Clamp(Context& ctx, const Tensor& x, double low, double high) {
  if (!ctx.ok()) return Tensor();
  if (!(low <= high)) {
    return BadShapes(ctx, "clamp takes low <= high, got ", low, " and ", high);
  }
  Tensor y = x;
  if (!std::isinf(low)) {
    y = Unary(ctx, "clamp", UnaryFunction::kAtLeast, low, y);
  }
  if (!std::isinf(high)) {
    y = Unary(ctx, "clamp", UnaryFunction::kAtMost, high, y);
  }
  return y;
}

Tensor Scale(Context& ctx, const Tensor& x, double factor) {
  return Unary(ctx, "scale", UnaryFunction::kScale, factor, x);
}

Tensor AddScalar(Context& ctx, const Tensor& x, double value) {
  return Unary(ctx, "add_scalar", UnaryFunction::kAddScalar, value, x);
}

}  // namespace troupe::nn::ops
