#include "nn/ops/gather.h"

#include <utility>

#include "base/check.h"
#include "nn/ops/axis_part.h"
#include "nn/ops/op_util.h"
#include "nn/ops/slice.h"

namespace troupe::nn::ops {
namespace {

absl::StatusOr<Tensor> GatherAlong(Kernels& kernels, const Tensor& x, int axis,
                                   const Tensor& index, const Shape& shape) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor y, Tensor::Create(shape, x.dtype(), kernels.allocator()));
  Tensor to = y.View(AroundAxis(shape, axis));
  TROUPE_RETURN_IF_ERROR(kernels.GatherAxis(
      x.Detached().View(AroundAxis(x.shape(), axis)), index, to));
  return y;
}

// `index` is i64[O or 1, J, I or 1] (nn/kernels/indexing.h).
class GatherNode final : public Node {
 public:
  GatherNode(const Shape& x, int axis, Tensor index)
      : x_(x), axis_(axis), index_(std::move(index)) {}
  const char* name() const override { return "gather"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor sums,
        Tensor::Create(AroundAxis(x_, axis_), dy.dtype(), kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(
        kernels.ScatterAddAxis(dy.View(AroundAxis(dy.shape(), axis_)), index_,
                               /*accumulate=*/false, sums));
    dx[0] = sums.View(x_);
    return absl::OkStatus();
  }

 private:
  const Shape x_;
  const int axis_;
  const Tensor index_;
};

class ScatterAddNode final : public Node {
 public:
  ScatterAddNode(int axis, Tensor index, const Shape& source)
      : axis_(axis), index_(std::move(index)), source_(source) {}
  const char* name() const override { return "scatter_add"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    if (wanted[0]) dx[0] = dy;
    if (!wanted[1]) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(dx[1],
                            GatherAlong(kernels, dy, axis_, index_, source_));
    return absl::OkStatus();
  }

 private:
  const int axis_;
  const Tensor index_;
  const Shape source_;
};

Tensor GatherFrom(Context& ctx, const char* name, const Tensor& x, int axis,
                  const Tensor& index, const Shape& shape) {
  Tensor y = ctx.Empty(name, shape, x.dtype());
  ctx.Note(name, y, 0);
  if (!ctx.computes()) return y;
  Tensor to = y.View(AroundAxis(shape, axis));
  const absl::Status status = ctx.kernels().GatherAxis(
      x.Detached().View(AroundAxis(x.shape(), axis)), index, to);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<GatherNode>(x.shape(), axis, index);
  });
}

Tensor AddAt(Context& ctx, const char* name, const Tensor& x, int axis,
             const Tensor& index, const Tensor& source) {
  Tensor y = ctx.Empty(name, x.shape(), x.dtype());
  ctx.Note(name, y, 1.0 * source.numel());
  if (!ctx.computes()) return y;
  Kernels& kernels = ctx.kernels();
  absl::Status status = kernels.Copy(x, y);
  Tensor sums = y.View(AroundAxis(x.shape(), axis));
  if (status.ok()) {
    status = kernels.ScatterAddAxis(
        source.Detached().View(AroundAxis(source.shape(), axis)), index,
        /*accumulate=*/true, sums);
  }
  return Finish(ctx, status, {x, source}, /*num_weights=*/0, y, [&] {
    return std::make_unique<ScatterAddNode>(axis, index, source.shape());
  });
}

bool IsIndex(const Tensor& t) {
  return t.defined() && t.dtype() == DType::kI64;
}

// Whether the shapes are equal except along the axis.
bool AreEqualBeside(int axis, const Shape& a, Shape b) {
  if (a.rank() != b.rank()) return false;
  b.set(axis, a[axis]);
  return a == b;
}

}  // namespace

Tensor Gather(Context& ctx, const Tensor& x, int given_axis,
              const Tensor& index) {
  if (!ctx.ok()) return Tensor();
  const int axis = AxisOf(x, given_axis);
  bool fit =
      axis >= 0 && IsIndex(index) && index.shape().rank() == x.shape().rank();
  for (int other = 0; fit && other < x.shape().rank(); ++other) {
    fit = other == axis || index.dim(other) <= x.dim(other);
  }
  if (!fit) {
    return BadShapes(ctx,
                     "gather takes x, an axis of it and indices i64 of its "
                     "rank, with at most its elements along other axes, got ",
                     Str(x), ", ", given_axis, " and ", Str(index));
  }
  Tensor from = x;
  for (int other = 0; other < x.shape().rank(); ++other) {
    if (other == axis || index.dim(other) == x.dim(other)) continue;
    from = Slice(ctx, from, other, 0, index.dim(other));
  }
  if (!ctx.ok()) return Tensor();
  return GatherFrom(ctx, "gather", from, axis,
                    index.View(AroundAxis(index.shape(), axis)), index.shape());
}

Tensor IndexSelect(Context& ctx, const Tensor& x, int given_axis,
                   const Tensor& index) {
  if (!ctx.ok()) return Tensor();
  const int axis = AxisOf(x, given_axis);
  if (axis < 0 || !IsIndex(index) || index.shape().rank() != 1) {
    return BadShapes(ctx,
                     "index_select takes x, an axis of it and indices i64[J], "
                     "got ",
                     Str(x), ", ", given_axis, " and ", Str(index));
  }
  Shape shape = x.shape();
  shape.set(axis, index.numel());
  return GatherFrom(ctx, "index_select", x, axis,
                    index.View({1, index.numel(), 1}), shape);
}

Tensor ScatterAdd(Context& ctx, const Tensor& x, int given_axis,
                  const Tensor& index, const Tensor& source) {
  if (!ctx.ok()) return Tensor();
  const int axis = AxisOf(x, given_axis);
  if (axis < 0 || !IsIndex(index) || !source.defined() ||
      !IsFloating(x.dtype()) || source.dtype() != x.dtype() ||
      index.shape() != source.shape() ||
      !AreEqualBeside(axis, x.shape(), source.shape())) {
    return BadShapes(ctx,
                     "scatter_add takes floating numbers x, an axis, and "
                     "indices i64 and a source of its dtype of one shape that "
                     "differs from that of x along the axis only, got ",
                     Str(x), ", ", given_axis, ", ", Str(index), " and ",
                     Str(source));
  }
  return AddAt(ctx, "scatter_add", x, axis,
               index.View(AroundAxis(index.shape(), axis)), source);
}

Tensor IndexAdd(Context& ctx, const Tensor& x, int given_axis,
                const Tensor& index, const Tensor& source) {
  if (!ctx.ok()) return Tensor();
  const int axis = AxisOf(x, given_axis);
  if (axis < 0 || !IsIndex(index) || index.shape().rank() != 1 ||
      !source.defined() || !IsFloating(x.dtype()) ||
      source.dtype() != x.dtype() ||
      !AreEqualBeside(axis, x.shape(), source.shape()) ||
      source.dim(axis) != index.numel()) {
    return BadShapes(ctx,
                     "index_add takes floating numbers x, an axis, indices "
                     "i64[J] and a source of its dtype with its shape but J "
                     "elements along the axis, got ",
                     Str(x), ", ", given_axis, ", ", Str(index), " and ",
                     Str(source));
  }
  return AddAt(ctx, "index_add", x, axis, index.View({1, index.numel(), 1}),
               source);
}

}  // namespace troupe::nn::ops
