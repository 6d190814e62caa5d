#include "nn/ops/where.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "nn/kernels/strided_loops.h"
#include "nn/ops/broadcast.h"
#include "nn/ops/op_util.h"
#include "nn/ops/scalar_like.h"

namespace troupe::nn::ops {
namespace {

class WhereNode final : public Node {
 public:
  WhereNode(Tensor condition, const Shape& a, const Shape& b)
      : condition_(std::move(condition)), a_(a), b_(b) {}
  const char* name() const override { return "where"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor zero, Tensor::Create({}, dy.dtype(), kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.Fill(0, zero));
    for (int i = 0; i < 2; ++i) {
      if (!wanted[i]) continue;
      TROUPE_ASSIGN_OR_RETURN(
          Tensor taken,
          Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
      TROUPE_RETURN_IF_ERROR(kernels.Select(condition_, i == 0 ? dy : zero,
                                            i == 0 ? zero : dy, taken));
      TROUPE_ASSIGN_OR_RETURN(dx[i], SumTo(kernels, taken, i == 0 ? a_ : b_));
    }
    return absl::OkStatus();
  }

 private:
  const Tensor condition_;
  const Shape a_, b_;
};

// Returns the shape that all three are broadcast to.
std::optional<Shape> ShapeOf(const Tensor& condition, const Tensor& a,
                             const Tensor& b) {
  const std::optional<Shape> sides = BroadcastShape(a.shape(), b.shape());
  return sides ? BroadcastShape(condition.shape(), *sides) : std::nullopt;
}

Tensor Chosen(Context& ctx, const char* name, const Tensor& condition,
              const Tensor& a, const Tensor& b) {
  Tensor y = ctx.Empty(name, *ShapeOf(condition, a, b), a.dtype());
  ctx.Note(name, y, 1.0 * y.numel());
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().Select(condition, a, b, y);
  return Finish(ctx, status, {a, b}, /*num_weights=*/0, y, [&] {
    return std::make_unique<WhereNode>(condition.Detached(), a.shape(),
                                       b.shape());
  });
}

bool IsCondition(const Tensor& t) {
  return t.defined() && IsFloating(t.dtype());
}

}  // namespace

Tensor Where(Context& ctx, const Tensor& condition, const Tensor& a,
             const Tensor& b) {
  if (!ctx.ok()) return Tensor();
  if (!IsCondition(condition) || !a.defined() || !b.defined() ||
      a.dtype() != b.dtype() || a.dtype() == DType::kU8 ||
      !ShapeOf(condition, a, b)) {
    return BadShapes(ctx,
                     "where takes a condition of floating numbers and two "
                     "tensors of one dtype, all of which broadcast to one "
                     "shape, got ",
                     Str(condition), ", ", Str(a), " and ", Str(b));
  }
  return Chosen(ctx, "where", condition, a, b);
}

Tensor Where(Context& ctx, const Tensor& condition, double a, const Tensor& b) {
  return Where(ctx, condition, ScalarLike(ctx, "where", b, a), b);
}

Tensor Where(Context& ctx, const Tensor& condition, const Tensor& a, double b) {
  return Where(ctx, condition, a, ScalarLike(ctx, "where", a, b));
}

Tensor MaskedFill(Context& ctx, const Tensor& x, const Tensor& mask,
                  double value) {
  const Tensor filled = ScalarLike(ctx, "masked_fill", x, value);
  if (!ctx.ok()) return Tensor();
  const std::optional<Shape> shape = BroadcastShape(x.shape(), mask.shape());
  if (!IsCondition(mask) || !shape || *shape != x.shape()) {
    return BadShapes(ctx,
                     "masked_fill takes a mask of floating numbers that "
                     "broadcasts to x, got ",
                     Str(x), " and ", Str(mask));
  }
  return Chosen(ctx, "masked_fill", mask, filled, x);
}

}  // namespace troupe::nn::ops
