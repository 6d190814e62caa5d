#include "nn/ops/concat.h"

#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/ops/axis_part.h"
#include "nn/ops/op_util.h"
#include "nn/ops/reshape.h"

namespace troupe::nn::ops {
namespace {

class ConcatNode final : public Node {
 public:
  ConcatNode(int axis, std::vector<Shape> shapes)
      : axis_(axis), shapes_(std::move(shapes)) {}
  const char* name() const override { return "concat"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool> wanted,
                              absl::Span<Tensor> dx) override {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const Shape& shape = shapes_[i];
      if (wanted[i]) {
        TROUPE_ASSIGN_OR_RETURN(dx[i], Part(kernels, dy, begin, shape));
      }
      begin += shape[axis_];
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Tensor> Part(Kernels& kernels, const Tensor& dy,
                              std::int64_t begin, const Shape& shape) const {
    if (IsContiguousPart(dy.shape(), axis_)) {
      return ViewOfPart(dy, axis_, begin, shape);
    }
    TROUPE_ASSIGN_OR_RETURN(
        Tensor part, Tensor::Create(shape, dy.dtype(), kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.CopyStrided(
        FromPart(dy.shape(), axis_, begin, shape), dy, part));
    return part;
  }

  const int axis_;
  const std::vector<Shape> shapes_;
};

// Whether `x` can follow `first` along `axis`.
bool Continues(const Tensor& first, const Tensor& x, int axis) {
  if (!x.defined() || x.dtype() != first.dtype() ||
      x.shape().rank() != first.shape().rank()) {
    return false;
  }
  Shape like_first = x.shape();
  like_first.set(axis, first.dim(axis));
  return like_first == first.shape();
}

absl::Status CopyAll(Kernels& kernels, absl::Span<const Tensor> xs, int axis,
                     Tensor& y) {
  std::int64_t begin = 0;
  for (const Tensor& x : xs) {
    TROUPE_RETURN_IF_ERROR(
        kernels.CopyStrided(ToPart(y.shape(), axis, begin, x.shape()), x, y));
    begin += x.dim(axis);
  }
  return absl::OkStatus();
}

std::string StrAll(absl::Span<const Tensor> xs) {
  return absl::StrJoin(
      xs, ", ", [](std::string* out, const Tensor& x) { out->append(Str(x)); });
}

}  // namespace

Tensor Concat(Context& ctx, absl::Span<const Tensor> xs, int given_axis) {
  if (!ctx.ok()) return Tensor();
  const int axis = xs.empty() ? -1 : AxisOf(xs[0], given_axis);
  bool fit = axis >= 0;
  for (const Tensor& x : xs) fit = fit && Continues(xs[0], x, axis);
  if (!fit) {
    return BadShapes(
        ctx, "concat takes tensors of one dtype that differ along axis ",
        given_axis, " only, got {", StrAll(xs), "}");
  }
  Shape shape = xs[0].shape();
  std::int64_t extent = 0;
  for (const Tensor& x : xs) extent += x.dim(axis);
  shape.set(axis, extent);
  Tensor y = ctx.Empty("concat", shape, xs[0].dtype());
  ctx.Note("concat", y, 0);
  if (!ctx.computes()) return y;
  const absl::Status status = CopyAll(ctx.kernels(), xs, axis, y);
  return Finish(ctx, status, xs, /*num_weights=*/0, y, [&] {
    std::vector<Shape> shapes;
    for (const Tensor& x : xs) shapes.push_back(x.shape());
    return std::make_unique<ConcatNode>(axis, std::move(shapes));
  });
}

Tensor Stack(Context& ctx, absl::Span<const Tensor> xs, int given_axis) {
  if (!ctx.ok()) return Tensor();
  const int rank = xs.empty() ? 0 : xs[0].shape().rank() + 1;
  const int axis = given_axis < 0 ? given_axis + rank : given_axis;
  bool fit = axis >= 0 && axis < rank && rank <= Shape::kMaxRank;
  for (const Tensor& x : xs) {
    fit = fit && x.defined() && x.shape() == xs[0].shape() &&
          x.dtype() == xs[0].dtype();
  }
  if (!fit) {
    return BadShapes(ctx,
                     "stack takes tensors of one shape and dtype, and an axis "
                     "of the result, got {",
                     StrAll(xs), "} and ", given_axis);
  }
  const absl::Span<const std::int64_t> dims = xs[0].shape().dims();
  std::vector<std::int64_t> extents(dims.begin(), dims.end());
  extents.insert(extents.begin() + axis, 1);
  std::vector<Tensor> parts;
  for (const Tensor& x : xs) {
    parts.push_back(Reshape(ctx, x, Shape(extents)));
  }
  return Concat(ctx, parts, axis);
}

}  // namespace troupe::nn::ops
