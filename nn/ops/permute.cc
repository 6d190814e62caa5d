#include "nn/ops/permute.h"

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Axis i of the result is axis at[i] of the operand.
struct Order {
  int rank = 0;
  std::array<int, Shape::kMaxRank> at{};
};

Order Inverse(const Order& order) {
  Order inverse{order.rank, {}};
  for (int axis = 0; axis < order.rank; ++axis) {
    inverse.at[order.at[axis]] = axis;
  }
  return inverse;
}

Shape Reordered(const Shape& x, const Order& order) {
  Shape y = x;
  for (int axis = 0; axis < order.rank; ++axis) y.set(axis, x[order.at[axis]]);
  return y;
}

absl::Status CopyReordered(Kernels& kernels, const Order& order,
                           const Tensor& x, Tensor& y) {
  const Strides of_x = StridesOf(x.shape());
  Strides strides{};
  for (int axis = 0; axis < order.rank; ++axis) {
    strides[axis] = of_x[order.at[axis]];
  }
  return kernels.CopyStrided(
      LoopsOver(y.shape(), strides, StridesOf(y.shape())), x, y);
}

class PermuteNode final : public Node {
 public:
  explicit PermuteNode(const Order& order) : inverse_(Inverse(order)) {}
  const char* name() const override { return "permute"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(Reordered(dy.shape(), inverse_), dy.dtype(),
                              kernels.allocator()));
    return CopyReordered(kernels, inverse_, dy, dx[0]);
  }

 private:
  const Order inverse_;
};

std::optional<Order> OrderOf(const Tensor& x, absl::Span<const int> axes) {
  const int rank = x.shape().rank();
  if (!x.defined() || static_cast<int>(axes.size()) != rank) {
    return std::nullopt;
  }
  Order order{rank, {}};
  std::array<bool, Shape::kMaxRank> taken{};
  for (int i = 0; i < rank; ++i) {
    const int axis = AxisOf(x, axes[i]);
    if (axis < 0 || std::exchange(taken[axis], true)) return std::nullopt;
    order.at[i] = axis;
  }
  return order;
}

}  // namespace

Tensor Permute(Context& ctx, const Tensor& x, absl::Span<const int> axes) {
  if (!ctx.ok()) return Tensor();
  const std::optional<Order> order = OrderOf(x, axes);
  if (!order) {
    return BadShapes(ctx, "permute takes the axes of x, each once, got ",
                     Str(x), " and {", absl::StrJoin(axes, ", "), "}");
  }
  Tensor y = ctx.Empty("permute", Reordered(x.shape(), *order), x.dtype());
  ctx.Note("permute", y, 0);
  if (!ctx.computes()) return y;
  const absl::Status status = CopyReordered(ctx.kernels(), *order, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<PermuteNode>(*order); });
}

Tensor Transpose(Context& ctx, const Tensor& x, int first, int second) {
  if (!ctx.ok()) return Tensor();
  const int a = AxisOf(x, first), b = AxisOf(x, second);
  if (a < 0 || b < 0) {
    return BadShapes(ctx, "transpose takes two axes of x, got ", Str(x), ", ",
                     first, " and ", second);
  }
  std::array<int, Shape::kMaxRank> axes{0, 1, 2, 3, 4, 5};
  std::swap(axes[a], axes[b]);
  return Permute(ctx, x, absl::MakeSpan(axes).first(x.shape().rank()));
}

}  // namespace troupe::nn::ops
