#include "nn/ops/dropout.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class DropoutNode final : public Node {
 public:
  explicit DropoutNode(const DropoutMask& mask) : mask_(mask) {}
  const char* name() const override { return "dropout"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(dy.shape(), dy.dtype(), kernels.allocator()));
    return kernels.Dropout(mask_, dy, dx[0]);
  }

 private:
  const DropoutMask mask_;
};

// Whether a sample of x has whole rows.
bool HasWholeRows(const Tensor& x, std::int64_t row) {
  return row == 0 || x.dim(0) == 0 || x.numel() / x.dim(0) % row == 0;
}

}  // namespace

PartOfSample PieceOfLastAxis(const Tensor& x, int piece, int pieces) {
  const std::int64_t row = x.shape().rank() > 0 ? x.dim(-1) : 0;
  return {piece * row, row, pieces * row};
}

PartOfSample PieceOfTokens(const Tensor& x, const AxisPlace& place) {
  std::int64_t elems = 1;
  for (int axis = 1; axis < x.shape().rank(); ++axis) elems *= x.dim(axis);
  return {place.coord * elems, elems, place.size * elems};
}

Tensor Dropout(Context& ctx, const Tensor& x, double p) {
  return DropoutOfPart(ctx, x, p, PartOfSample());
}

Tensor DropoutOfPart(Context& ctx, const Tensor& x, double p,
                     const PartOfSample& part) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() < 1 || !(p >= 0 && p <= 1)) {
    return BadShapes(
        ctx, "dropout takes x[N, ...] and a probability in [0, 1], got ",
        Str(x), " and ", p);
  }
  if (!HasWholeRows(x, part.row)) {
    return BadShapes(ctx, "dropout of a part takes samples of whole rows, got ",
                     Str(x), " in rows of ", part.row);
  }
  if (!ctx.training() || p == 0) return x;
  Tensor y = ctx.Empty("dropout", x.shape(), x.dtype());
  ctx.Note("dropout", y, 1.0 * y.numel());
  if (!ctx.computes()) return y;
  if (p == 1) {
    // A draw is always below 2^32: everything is dropped.
    const absl::Status zeroed = ctx.kernels().Fill(0.0, y);
    return zeroed.ok() ? y : ctx.Fail(zeroed);
  }
  std::optional<DropoutMask> mask = DrawMask(ctx, p);
  if (!mask) return Tensor();
  mask->first = part.first;
  mask->row = part.row;
  mask->stride = part.stride;
  const absl::Status status = ctx.kernels().Dropout(*mask, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<DropoutNode>(*mask); });
}

std::optional<DropoutMask> DrawMask(Context& ctx, double p) {
  const std::optional<SampleDraws> draws = ctx.Random(Purpose::kDropout);
  if (!draws) return std::nullopt;
  return DropoutMask{*draws, static_cast<std::uint32_t>(std::ldexp(p, 32)),
                     1 / (1 - p), ctx.random_place()};
}

}  // namespace troupe::nn::ops
