#include "nn/ops/flip.h"

#include <array>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

using Flipped = std::array<bool, Shape::kMaxRank>;

absl::Status CopyFlipped(Kernels& kernels, const Flipped& flipped,
                         const Tensor& x, Tensor& y) {
  if (x.numel() == 0) return absl::OkStatus();
  Strides from = StridesOf(x.shape());
  std::int64_t begin = 0;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    if (!flipped[axis]) continue;
    begin += (x.dim(axis) - 1) * from[axis];
    from[axis] = -from[axis];
  }
  StridedLoops loops = LoopsOver(y.shape(), from, StridesOf(y.shape()));
  loops.a_begin = begin;
  return kernels.CopyStrided(loops, x, y);
}

// Copies the two parts of the axis to their places.
absl::Status CopyRolled(Kernels& kernels, int axis, std::int64_t shift,
                        const Tensor& x, Tensor& y) {
  const Strides strides = StridesOf(x.shape());
  const std::int64_t extent = x.dim(axis);
  struct Move {
    std::int64_t from, to, count;
  };
  for (const auto& [from, to, count] :
       {Move{0, shift, extent - shift}, Move{extent - shift, 0, shift}}) {
    Shape part = x.shape();
    part.set(axis, count);
    StridedLoops loops = LoopsOver(part, strides, strides);
    loops.a_begin = from * strides[axis];
    loops.b_begin = to * strides[axis];
    TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(loops, x, y));
  }
  return absl::OkStatus();
}

class FlipNode final : public Node {
 public:
  explicit FlipNode(const Flipped& flipped) : flipped_(flipped) {}
  const char* name() const override { return "flip"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    return CopyFlipped(kernels, flipped_, dy, dx[0]);
  }

 private:
  const Flipped flipped_;
};

class RollNode final : public Node {
 public:
  RollNode(int axis, std::int64_t shift) : axis_(axis), shift_(shift) {}
  const char* name() const override { return "roll"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    return CopyRolled(kernels, axis_, dy.dim(axis_) - shift_, dy, dx[0]);
  }

 private:
  const int axis_;
  const std::int64_t shift_;
};

}  // namespace

Tensor Flip(Context& ctx, const Tensor& x, absl::Span<const int> axes) {
  if (!ctx.ok()) return Tensor();
  Flipped flipped{};
  bool fit = x.defined();
  for (const int given : axes) {
    const int axis = AxisOf(x, given);
    fit = fit && axis >= 0 && !std::exchange(flipped[axis], true);
  }
  if (!fit) {
    return BadShapes(ctx, "flip takes axes of x, each once, got ", Str(x),
                     " and {", absl::StrJoin(axes, ", "), "}");
  }
  Tensor y = ctx.Empty("flip", x.shape(), x.dtype());
  ctx.Note("flip", y, 0);
  if (!ctx.computes()) return y;
  const absl::Status status = CopyFlipped(ctx.kernels(), flipped, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<FlipNode>(flipped); });
}

Tensor Roll(Context& ctx, const Tensor& x, std::int64_t shift, int given_axis) {
  if (!ctx.ok()) return Tensor();
  const int axis = AxisOf(x, given_axis);
  if (axis < 0) {
    return BadShapes(ctx, "roll takes an axis of x, got ", Str(x), " and ",
                     given_axis);
  }
  const std::int64_t extent = x.dim(axis);
  const std::int64_t by =
      extent == 0 ? 0 : ((shift % extent) + extent) % extent;
  Tensor y = ctx.Empty("roll", x.shape(), x.dtype());
  ctx.Note("roll", y, 0);
  if (!ctx.computes()) return y;
  const absl::Status status = CopyRolled(ctx.kernels(), axis, by, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<RollNode>(axis, by); });
}

}  // namespace troupe::nn::ops
