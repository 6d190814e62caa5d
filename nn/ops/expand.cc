#include "nn/ops/expand.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/ops/broadcast.h"
#include "nn/ops/op_util.h"
#include "nn/ops/reshape.h"

namespace troupe::nn::ops {
namespace {

class ExpandNode final : public Node {
 public:
  explicit ExpandNode(const Shape& x) : x_(x) {}
  const char* name() const override { return "expand"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(dx[0], SumTo(kernels, dy, x_));
    return absl::OkStatus();
  }

 private:
  const Shape x_;
};

// Returns `count` copies of x along `axis`, side by side.
Tensor RepeatAxis(Context& ctx, const Tensor& x, int axis, std::int64_t count) {
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= x.dim(i);
  const std::int64_t inner = outer == 0 ? 0 : x.numel() / outer;
  Shape repeated = x.shape();
  repeated.set(axis, count * x.dim(axis));
  const Tensor rows = Reshape(ctx, x, {outer, 1, inner});
  return Reshape(ctx, Expand(ctx, rows, {outer, count, inner}), repeated);
}

}  // namespace

Tensor Expand(Context& ctx, const Tensor& x, const Shape& shape) {
  if (!ctx.ok()) return Tensor();
  const std::optional<Shape> fits =
      x.defined() ? BroadcastShape(x.shape(), shape) : std::nullopt;
  if (!fits || *fits != shape) {
    return BadShapes(ctx,
                     "expand takes a tensor that broadcasts to the shape, ",
                     "got ", Str(x), " and ", shape.ToString());
  }
  if (x.shape() == shape) return x;
  Tensor y = ctx.Empty("expand", shape, x.dtype());
  ctx.Note("expand", y, 0);
  if (!ctx.computes()) return y;
  const StridedLoops loops = BroadcastLoops(shape, x.shape(), shape);
  const absl::Status status = ctx.kernels().CopyStrided(loops, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<ExpandNode>(x.shape()); });
}

Tensor Repeat(Context& ctx, const Tensor& x,
              absl::Span<const std::int64_t> counts) {
  if (!ctx.ok()) return Tensor();
  const int rank = x.shape().rank(), want = static_cast<int>(counts.size());
  bool fits = x.defined() && want >= rank && want <= Shape::kMaxRank;
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < want && fits; ++axis) {
    const int of_x = axis - (want - rank);
    const std::int64_t extent = of_x < 0 ? 1 : x.dim(of_x);
    fits = counts[axis] >= 0 &&
           (extent == 0 || counts[axis] <= Shape::kMaxNumel / extent);
    if (fits) extents.push_back(counts[axis] * extent);
  }
  if (!fits || !Shape::Fits(extents)) {
    return BadShapes(ctx, "repeat takes a count for each axis of x, at most ",
                     Shape::kMaxRank, " of them, got ", Str(x), " and {",
                     absl::StrJoin(counts, ", "), "}");
  }
  std::vector<std::int64_t> dims(want, 1);
  std::copy_n(x.shape().dims().begin(), rank, dims.end() - rank);
  Tensor y = rank == want ? x : Reshape(ctx, x, Shape(dims));
  for (int axis = 0; axis < want && ctx.ok(); ++axis) {
    if (counts[axis] != 1) y = RepeatAxis(ctx, y, axis, counts[axis]);
  }
  return y;
}

std::vector<Tensor> Meshgrid(Context& ctx, absl::Span<const Tensor> xs,
                             GridIndexing indexing) {
  if (!ctx.ok()) return {};
  const int rank = static_cast<int>(xs.size());
  bool fit = rank >= 1 && rank <= Shape::kMaxRank;
  std::vector<std::int64_t> extents;
  for (const Tensor& x : xs) {
    fit = fit && x.defined() && x.shape().rank() == 1;
    if (fit) extents.push_back(x.numel());
  }
  if (!fit || !Shape::Fits(extents)) {
    BadShapes(ctx, "meshgrid takes 1 to ", Shape::kMaxRank,
              " vectors whose grid has less than 2^60 points, got {",
              absl::StrJoin(xs, ", ",
                            [](std::string* out, const Tensor& x) {
                              out->append(Str(x));
                            }),
              "}");
    return {};
  }
  const auto axis_of = [&](int i) {
    return indexing == GridIndexing::kXY && rank >= 2 && i < 2 ? 1 - i : i;
  };
  for (int i = 0; i < rank; ++i) extents[axis_of(i)] = xs[i].numel();
  std::vector<Tensor> grids;
  for (int i = 0; i < rank && ctx.ok(); ++i) {
    std::vector<std::int64_t> line(rank, 1);
    line[axis_of(i)] = xs[i].numel();
    grids.push_back(
        Expand(ctx, Reshape(ctx, xs[i], Shape(line)), Shape(extents)));
  }
  return ctx.ok() ? grids : std::vector<Tensor>();
}

}  // namespace troupe::nn::ops
