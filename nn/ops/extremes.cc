#include "nn/ops/extremes.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/ops/axis_part.h"
#include "nn/ops/broadcast.h"
#include "nn/ops/op_util.h"
#include "nn/ops/reshape.h"

namespace troupe::nn::ops {
namespace {

// The shape of the extremes of x[O, K, I] along K.
Shape KeptOf(const Shape& x) { return {x[0], x[2]}; }

// Returns the shape without the axis, or with extent 1 along it.
Shape Without(const Shape& x, int axis, bool keep_dims) {
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
  if (keep_dims) {
    dims[axis] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  return Shape(dims);
}

class ExtremeNode final : public Node {
 public:
  ExtremeNode(const Shape& x, int axis, Tensor indices)
      : x_(x), whole_(AroundAxis(x, axis)), indices_(std::move(indices)) {}
  const char* name() const override { return "extreme"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor placed, Tensor::Create(whole_, dy.dtype(), kernels.allocator()));
    const Shape kept = KeptOf(whole_);
    TROUPE_RETURN_IF_ERROR(
        kernels.PlaceAlongAxis(dy.View(kept), indices_.View(kept), placed));
    dx[0] = placed.View(x_);
    return absl::OkStatus();
  }

 private:
  const Shape x_, whole_;
  const Tensor indices_;
};

// dy, in equal shares, for all elements that equal the extreme.
class SharedExtremeNode final : public Node {
 public:
  SharedExtremeNode(Tensor x, Tensor kept)
      : x_(std::move(x)), kept_(std::move(kept)) {}
  const char* name() const override { return "shared_extreme"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    const Shape& kept = kept_.shape();
    Allocator& memory = kernels.allocator();
    TROUPE_ASSIGN_OR_RETURN(dx[0],
                            Tensor::Create(x_.shape(), dy.dtype(), memory));
    TROUPE_ASSIGN_OR_RETURN(Tensor share,
                            Tensor::Create(kept, dy.dtype(), memory));
    TROUPE_RETURN_IF_ERROR(
        kernels.Binary(BinaryFunction::kEqual, x_, kept_, dx[0]));
    TROUPE_RETURN_IF_ERROR(kernels.SumAxes(dx[0], /*divisor=*/1, share));
    TROUPE_RETURN_IF_ERROR(
        kernels.Binary(BinaryFunction::kDivide, dy.View(kept), share, share));
    return kernels.Binary(BinaryFunction::kMultiply, dx[0], share, dx[0]);
  }

 private:
  const Tensor x_, kept_;
};

Extremes ExtremesOf(Context& ctx, const char* name, bool largest,
                    const Tensor& x, int given_axis, bool keep_dims) {
  if (!ctx.ok()) return {};
  const int axis = AxisOf(x, given_axis);
  if (axis < 0 || x.dim(axis) == 0 || !IsFloating(x.dtype())) {
    BadShapes(ctx, name,
              " takes floating numbers and an axis of theirs that is not "
              "empty, got ",
              Str(x), " and ", given_axis);
    return {};
  }
  const Shape whole = AroundAxis(x.shape(), axis);
  const Shape shape = Without(x.shape(), axis, keep_dims);
  Tensor values = ctx.Empty(name, shape, x.dtype());
  Tensor indices = ctx.Empty(name, shape, DType::kI64);
  ctx.Note(name, values, 1.0 * x.numel());
  if (!ctx.computes()) return {values, indices};
  const Shape kept = KeptOf(whole);
  Tensor to = values.View(kept), at = indices.View(kept);
  const absl::Status status =
      ctx.kernels().ExtremeOfAxis(largest, x.Detached().View(whole), to, at);
  values = Finish(ctx, status, {x}, /*num_weights=*/0, values, [&] {
    return std::make_unique<ExtremeNode>(x.shape(), axis, indices);
  });
  return {values, indices};
}

// Returns the sorted axes, counted from 0, all if none are given; empty after
// an error.
std::vector<int> AxesOf(const Tensor& x, absl::Span<const int> given) {
  std::vector<int> axes;
  if (!x.defined() || !IsFloating(x.dtype())) return axes;
  if (given.empty()) {
    axes.resize(x.shape().rank());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (const int axis : given) axes.push_back(AxisOf(x, axis));
  std::sort(axes.begin(), axes.end());
  bool fit = std::adjacent_find(axes.begin(), axes.end()) == axes.end();
  for (const int axis : axes) fit = fit && axis >= 0 && x.dim(axis) > 0;
  if (!fit) axes.clear();
  return axes;
}

Tensor SharedExtreme(Context& ctx, const char* name, bool largest,
                     const Tensor& x, absl::Span<const int> given,
                     bool keep_dims) {
  if (!ctx.ok()) return Tensor();
  const std::vector<int> axes = AxesOf(x, given);
  if (x.defined() && x.shape().rank() == 0 && given.empty()) return x;
  if (axes.empty()) {
    return BadShapes(ctx, name,
                     " takes floating numbers and axes of theirs that are not "
                     "empty, each once, got ",
                     Str(x), " and {", absl::StrJoin(given, ", "), "}");
  }
  Tensor kept = x.Detached();
  for (const int axis : axes) {
    kept =
        ExtremesOf(ctx, name, largest, kept, axis, /*keep_dims=*/true).values;
  }
  if (!ctx.ok()) return Tensor();
  Shape shape = kept.shape();
  if (!keep_dims) {
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      shape = Without(shape, *axis, /*keep_dims=*/false);
    }
  }
  Tensor y = kept.View(shape);
  if (!ctx.computes()) return y;
  return Finish(ctx, absl::OkStatus(), {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<SharedExtremeNode>(x, kept); });
}

absl::Status CheckLabels(const Tensor& labels, std::int64_t classes) {
  if (!labels.host_accessible()) return absl::OkStatus();
  for (const std::int64_t label : labels.span<std::int64_t>()) {
    if (label >= 0 && label < classes) continue;
    return absl::OutOfRangeError(absl::StrCat(
        "one_hot: a label must be in [0, ", classes, "), not ", label));
  }
  return absl::OkStatus();
}

}  // namespace

Extremes Max(Context& ctx, const Tensor& x, int axis, bool keep_dims) {
  return ExtremesOf(ctx, "max", /*largest=*/true, x, axis, keep_dims);
}

Extremes Min(Context& ctx, const Tensor& x, int axis, bool keep_dims) {
  return ExtremesOf(ctx, "min", /*largest=*/false, x, axis, keep_dims);
}

Tensor Argmax(Context& ctx, const Tensor& x, int axis, bool keep_dims) {
  return ExtremesOf(ctx, "argmax", /*largest=*/true, x.Detached(), axis,
                    keep_dims)
      .indices;
}

Tensor Argmin(Context& ctx, const Tensor& x, int axis, bool keep_dims) {
  return ExtremesOf(ctx, "argmin", /*largest=*/false, x.Detached(), axis,
                    keep_dims)
      .indices;
}

Tensor Amax(Context& ctx, const Tensor& x, absl::Span<const int> axes,
            bool keep_dims) {
  return SharedExtreme(ctx, "amax", /*largest=*/true, x, axes, keep_dims);
}

Tensor Amin(Context& ctx, const Tensor& x, absl::Span<const int> axes,
            bool keep_dims) {
  return SharedExtreme(ctx, "amin", /*largest=*/false, x, axes, keep_dims);
}

Tensor OneHot(Context& ctx, const Tensor& labels, std::int64_t classes,
              DType dtype) {
  if (!ctx.ok()) return Tensor();
  std::vector<std::int64_t> dims(labels.shape().dims().begin(),
                                 labels.shape().dims().end());
  dims.push_back(classes);
  if (!labels.defined() || labels.dtype() != DType::kI64 || classes < 1 ||
      !Shape::Fits(dims) || !IsFloating(dtype)) {
    return BadShapes(ctx,
                     "one_hot takes labels i64[...], a number of classes and a "
                     "floating dtype, got ",
                     Str(labels), ", ", classes, " and ", DTypeName(dtype));
  }
  Tensor y = ctx.Empty("one_hot", Shape(dims), dtype);
  ctx.Note("one_hot", y, 0);
  if (!ctx.computes()) return y;
  const std::int64_t n = labels.numel();
  Tensor ones = ctx.Empty("one_hot", {n, 1}, dtype);
  if (!ctx.ok()) return Tensor();
  absl::Status status = CheckLabels(labels, classes);
  if (status.ok()) status = ctx.kernels().Fill(1, ones);
  Tensor rows = y.View({n, classes, 1});
  if (status.ok()) {
    status = ctx.kernels().PlaceAlongAxis(ones, labels.View({n, 1}), rows);
  }
  return status.ok() ? y : ctx.Fail(status);
}

}  // namespace troupe::nn::ops
