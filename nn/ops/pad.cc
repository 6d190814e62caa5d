#include "nn/ops/pad.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class PadNode final : public Node {
 public:
  PadNode(const char* name, const Padding2d& padding, const Shape& x)
      : name_(name), padding_(padding), x_(x) {}
  const char* name() const override { return name_; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_, dy.dtype(), kernels.allocator()));
    Tensor images = AsImages(dx[0]);
    return kernels.Pad2dBackward(padding_, AsImages(dy), images);
  }

 private:
  const char* const name_;
  const Padding2d padding_;
  const Shape x_;
};

// Whether an axis of `extent` has the pixels that its border copies.
bool HasBorder(PadMode mode, std::int64_t before, std::int64_t after,
               std::int64_t extent) {
  // The sum of three such numbers fits into 63 bits.
  if (before < 0 || before > Shape::kMaxNumel) return false;
  if (after < 0 || after > Shape::kMaxNumel) return false;
  switch (mode) {
    case PadMode::kZeros:
      return true;
    case PadMode::kReflect:
      return std::max(before, after) < std::max<std::int64_t>(extent, 1);
    case PadMode::kReplicate:
      return extent > 0 || before + after == 0;
    case PadMode::kCircular:
      return std::max(before, after) <= extent;
  }
  return false;
}

const char* NameOf(PadMode mode) {
  switch (mode) {
    case PadMode::kZeros:
      return "zeros";
    case PadMode::kReflect:
      return "reflect";
    case PadMode::kReplicate:
      return "replicate";
    case PadMode::kCircular:
      return "circular";
  }
  return "unknown";
}

// `out` is x's shape with its border.
Tensor Pad(Context& ctx, const char* name, const Tensor& x,
           const Padding2d& padding, const Shape& out) {
  Tensor y = ctx.Empty(name, out, x.dtype());
  ctx.Note(name, y, 0);
  if (!ctx.computes()) return y;
  Tensor images = AsImages(y);
  const absl::Status status =
      ctx.kernels().Pad2dForward(padding, AsImages(x), images);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<PadNode>(name, padding, x.shape());
  });
}

}  // namespace

Tensor Pad2d(Context& ctx, const Tensor& x, const Padding2d& p) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() != 4) {
    return BadShapes(ctx, "pad2d takes x[N, H, W, C], got ", Str(x));
  }
  if (!HasBorder(p.mode, p.top, p.bottom, x.dim(1)) ||
      !HasBorder(p.mode, p.left, p.right, x.dim(2)) ||
      !Shape::Fits({x.dim(0), p.top + x.dim(1) + p.bottom,
                    p.left + x.dim(2) + p.right, x.dim(3)})) {
    return BadShapes(ctx, "pad2d by ", NameOf(p.mode), ", ", p.top, " + ",
                     p.bottom, " rows and ", p.left, " + ", p.right,
                     " columns, does not go around ", Str(x));
  }
  return Pad(ctx, "pad2d", x, p,
             {x.dim(0), p.top + x.dim(1) + p.bottom,
              p.left + x.dim(2) + p.right, x.dim(3)});
}

Tensor Pad1d(Context& ctx, const Tensor& x, const Padding1d& p) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() != 3) {
    return BadShapes(ctx, "pad1d takes x[N, L, C], got ", Str(x));
  }
  if (!HasBorder(p.mode, p.before, p.after, x.dim(1)) ||
      !Shape::Fits({x.dim(0), p.before + x.dim(1) + p.after, x.dim(2)})) {
    return BadShapes(ctx, "pad1d by ", NameOf(p.mode), ", ", p.before, " + ",
                     p.after, ", does not go around ", Str(x));
  }
  return Pad(ctx, "pad1d", x, {0, 0, p.before, p.after, p.mode},
             {x.dim(0), p.before + x.dim(1) + p.after, x.dim(2)});
}

}  // namespace troupe::nn::ops
