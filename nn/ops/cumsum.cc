#include "nn/ops/cumsum.h"

#include "base/check.h"
#include "nn/ops/axis_part.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Computes y, the cumulative sums of x from the first or the last element on.
absl::Status SumAlong(Kernels& kernels, int axis, bool from_last,
                      const Tensor& x, const Tensor& y) {
  const Shape shape = AroundAxis(x.shape(), axis);
  Tensor sums = y.View(shape);
  return kernels.CumulativeSum(from_last, x.Detached().View(shape), sums);
}

class CumsumNode final : public Node {
 public:
  explicit CumsumNode(int axis) : axis_(axis) {}
  const char* name() const override { return "cumsum"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    return SumAlong(kernels, axis_, /*from_last=*/true, dy, dx[0]);
  }

 private:
  const int axis_;
};

}  // namespace

Tensor Cumsum(Context& ctx, const Tensor& x, int given_axis) {
  if (!ctx.ok()) return Tensor();
  const int axis = AxisOf(x, given_axis);
  if (axis < 0 || !IsFloating(x.dtype())) {
    return BadShapes(ctx,
                     "cumsum takes floating numbers and an axis of theirs, "
                     "got ",
                     Str(x), " and ", given_axis);
  }
  Tensor y = ctx.Empty("cumsum", x.shape(), x.dtype());
  ctx.Note("cumsum", y, 1.0 * x.numel());
  if (!ctx.computes()) return y;
  const absl::Status status =
      SumAlong(ctx.kernels(), axis, /*from_last=*/false, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<CumsumNode>(axis); });
}

}  // namespace troupe::nn::ops
