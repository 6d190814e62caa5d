#include "nn/ops/sort.h"

#include <utility>

#include "base/check.h"
#include "nn/ops/axis_part.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class SortNode final : public Node {
 public:
  SortNode(const Shape& x, int axis, Tensor indices)
      : x_(x), axis_(axis), indices_(std::move(indices)) {}
  const char* name() const override { return "sort"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor placed,
        Tensor::Create(AroundAxis(x_, axis_), dy.dtype(), kernels.allocator()));
    const Shape sorted = AroundAxis(dy.shape(), axis_);
    TROUPE_RETURN_IF_ERROR(kernels.ScatterAddAxis(
        dy.View(sorted), indices_.View(sorted), /*accumulate=*/false, placed));
    dx[0] = placed.View(x_);
    return absl::OkStatus();
  }

 private:
  const Shape x_;
  const int axis_;
  const Tensor indices_;
};

// Sorts all elements if `k` is negative.
Sorted FirstOf(Context& ctx, const char* name, const Tensor& x, int given_axis,
               bool descending, std::int64_t k) {
  if (!ctx.ok()) return {};
  const int axis = AxisOf(x, given_axis);
  if (axis < 0 || !IsFloating(x.dtype())) {
    BadShapes(ctx, name, " takes floating numbers and an axis of theirs, got ",
              Str(x), " and ", given_axis);
    return {};
  }
  Shape shape = x.shape();
  if (k >= 0) shape.set(axis, k);
  Tensor values = ctx.Empty(name, shape, x.dtype());
  Tensor indices = ctx.Empty(name, shape, DType::kI64);
  ctx.Note(name, values, 1.0 * x.numel());
  if (!ctx.computes()) return {values, indices};
  const Shape sorted = AroundAxis(shape, axis);
  Tensor to = values.View(sorted), at = indices.View(sorted);
  const absl::Status status = ctx.kernels().SortAxis(
      descending, x.Detached().View(AroundAxis(x.shape(), axis)), to, at);
  values = Finish(ctx, status, {x}, /*num_weights=*/0, values, [&] {
    return std::make_unique<SortNode>(x.shape(), axis, indices);
  });
  return {values, indices};
}

}  // namespace

Sorted TopK(Context& ctx, const Tensor& x, std::int64_t k, int axis,
            bool largest) {
  if (!ctx.ok()) return {};
  const int counted = AxisOf(x, axis);
  if (counted >= 0 && (k < 0 || k > x.dim(counted))) {
    BadShapes(ctx, "topk takes k from 0 to the elements of the axis, got ", k,
              ", ", Str(x), " and axis ", axis);
    return {};
  }
  return FirstOf(ctx, "topk", x, axis, /*descending=*/largest, k);
}

Sorted Sort(Context& ctx, const Tensor& x, int axis, bool descending) {
  return FirstOf(ctx, "sort", x, axis, descending, /*k=*/-1);
}

Tensor Argsort(Context& ctx, const Tensor& x, int axis, bool descending) {
  return FirstOf(ctx, "argsort", x.Detached(), axis, descending, /*k=*/-1)
      .indices;
}

}  // namespace troupe::nn::ops
