#include "nn/ops/reduce.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/check.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/broadcast.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// dx is dy for every term, divided by the divisor of the sum.
class ReduceNode final : public Node {
 public:
  ReduceNode(const char* name, const Shape& x, const Shape& kept,
             double divisor)
      : name_(name), x_(x), kept_(kept), divisor_(divisor) {}
  const char* name() const override { return name_; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    Tensor share = dy.View(kept_);
    if (divisor_ != 1) {
      TROUPE_ASSIGN_OR_RETURN(
          share, Tensor::Create(kept_, dy.dtype(), kernels.allocator()));
      TROUPE_RETURN_IF_ERROR(
          kernels.UnaryForward(UnaryFunction::kScale, 1 / divisor_, dy, share));
    }
    TROUPE_ASSIGN_OR_RETURN(dx[0], ExpandTo(kernels, share, x_));
    return absl::OkStatus();
  }

 private:
  const char* const name_;
  const Shape x_, kept_;  // kept_: the sums, with axes of extent 1
  const double divisor_;
};

// The shapes of sums over `axes`, with those axes and without.
struct SumShapes {
  Shape kept, dropped;
};

std::optional<SumShapes> ShapesOf(const Tensor& x, absl::Span<const int> axes) {
  if (!x.defined() || !IsFloating(x.dtype())) return std::nullopt;
  std::array<bool, Shape::kMaxRank> summed{};
  if (axes.empty()) summed.fill(true);
  for (int given : axes) {
    const int axis = AxisOf(x, given);
    if (axis < 0 || summed[axis]) return std::nullopt;
    summed[axis] = true;
  }
  SumShapes shapes{x.shape(), {}};
  std::vector<std::int64_t> dropped;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    if (summed[axis]) {
      shapes.kept.set(axis, 1);
    } else {
      dropped.push_back(x.dim(axis));
    }
  }
  shapes.dropped = Shape(dropped);
  return shapes;
}

// Returns the number of elements of x in each sum.
double TermsOf(const Shape& x, const Shape& kept) {
  double terms = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (kept[axis] == 1) terms *= static_cast<double>(x[axis]);
  }
  return terms;
}

Tensor Reduce(Context& ctx, const char* name, bool mean, const Tensor& x,
              absl::Span<const int> axes, bool keep_dims) {
  if (!ctx.ok()) return Tensor();
  const std::optional<SumShapes> shapes = ShapesOf(x, axes);
  if (!shapes) {
    return BadShapes(ctx, name,
                     " takes floating numbers and axes of theirs, each once, "
                     "got ",
                     Str(x), " and {", absl::StrJoin(axes, ", "), "}");
  }
  Tensor sums = ctx.Empty(name, shapes->kept, x.dtype());
  if (!ctx.ok()) return Tensor();
  Tensor y = keep_dims ? sums : sums.View(shapes->dropped);
  ctx.Note(name, y, 1.0 * x.numel());
  if (!ctx.computes()) return y;
  const double divisor = mean ? TermsOf(x.shape(), shapes->kept) : 1;
  const absl::Status status = ctx.kernels().SumAxes(x, divisor, sums);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<ReduceNode>(name, x.shape(), shapes->kept, divisor);
  });
}

}  // namespace

Tensor Sum(Context& ctx, const Tensor& x, absl::Span<const int> axes,
           bool keep_dims) {
  return Reduce(ctx, "sum", /*mean=*/false, x, axes, keep_dims);
}

Tensor Mean(Context& ctx, const Tensor& x, absl::Span<const int> axes,
            bool keep_dims) {
  return Reduce(ctx, "mean", /*mean=*/true, x, axes, keep_dims);
}

Tensor Variance(Context& ctx, const Tensor& x, absl::Span<const int> axes,
                int correction, bool keep_dims) {
  const Tensor mean = Mean(ctx, x, axes, /*keep_dims=*/true);
  if (!ctx.ok()) return Tensor();
  const Tensor squares = Square(ctx, Sub(ctx, x, mean));
  const double divisor = TermsOf(x.shape(), mean.shape()) - correction;
  return Scale(ctx, Sum(ctx, squares, axes, keep_dims), 1 / divisor);
}

}  // namespace troupe::nn::ops
