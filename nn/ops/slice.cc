#include "nn/ops/slice.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/ops/axis_part.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class SliceNode final : public Node {
 public:
  SliceNode(const Shape& x, int axis, std::int64_t begin)
      : x_(x), axis_(axis), begin_(begin) {}
  const char* name() const override { return "slice"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_, dy.dtype(), kernels.allocator()));
    TROUPE_RETURN_IF_ERROR(kernels.Fill(0.0, dx[0]));
    return kernels.CopyStrided(ToPart(x_, axis_, begin_, dy.shape()), dy,
                               dx[0]);
  }

 private:
  const Shape x_;
  const int axis_;
  const std::int64_t begin_;
};

}  // namespace

Tensor Slice(Context& ctx, const Tensor& x, int given_axis, std::int64_t begin,
             std::int64_t end) {
  if (!ctx.ok()) return Tensor();
  const int axis = AxisOf(x, given_axis);
  if (axis < 0 || begin < 0 || begin > end || end > x.dim(axis)) {
    return BadShapes(ctx, "slice takes a range of an axis of x, got ", Str(x),
                     ", axis ", given_axis, " and [", begin, ", ", end, ")");
  }
  Shape shape = x.shape();
  shape.set(axis, end - begin);
  const bool shares = IsContiguousPart(x.shape(), axis) && !ctx.shape_only();
  Tensor y = shares ? ViewOfPart(x.Detached(), axis, begin, shape)
                    : ctx.Empty("slice", shape, x.dtype());
  ctx.Note("slice", y, 0);
  if (!ctx.computes()) return y;
  absl::Status status;
  if (!shares) {
    status = ctx.kernels().CopyStrided(FromPart(x.shape(), axis, begin, shape),
                                       x, y);
  }
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<SliceNode>(x.shape(), axis, begin);
  });
}

std::vector<Tensor> Split(Context& ctx, const Tensor& x, int given_axis,
                          absl::Span<const std::int64_t> extents) {
  if (!ctx.ok()) return {};
  const int axis = AxisOf(x, given_axis);
  std::int64_t left = axis < 0 ? -1 : x.dim(axis);
  for (std::int64_t extent : extents) {
    left = extent < 0 || extent > left ? -1 : left - extent;
  }
  if (left != 0) {
    BadShapes(ctx,
              "split takes the extents of parts that make up an axis, got ",
              Str(x), ", axis ", given_axis, " and {",
              absl::StrJoin(extents, ", "), "}");
    return {};
  }
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (std::int64_t extent : extents) {
    parts.push_back(Slice(ctx, x, axis, begin, begin + extent));
    begin += extent;
  }
  if (!ctx.ok()) return {};
  return parts;
}

}  // namespace troupe::nn::ops
