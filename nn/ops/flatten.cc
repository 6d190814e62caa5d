#include "nn/ops/flatten.h"

#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

// Whether the order is already right: one channel, one pixel, or no image.
bool IsPlainView(const Shape& x) {
  return x.rank() != 4 || x[3] == 1 || x[1] * x[2] == 1;
}

class FlattenNode final : public Node {
 public:
  explicit FlattenNode(const Shape& x) : x_(x) {}
  const char* name() const override { return "flatten"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    if (IsPlainView(x_)) {
      dx[0] = dy.View(x_);
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_, dy.dtype(), kernels.allocator()));
    return kernels.NchwToNhwc(dy.View({x_[0], x_[3], x_[1], x_[2]}), dx[0]);
  }

 private:
  Shape x_;
};

}  // namespace

Tensor Flatten(Context& ctx, const Tensor& x) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() < 1) {
    return BadShapes(ctx, "flatten takes x[N, ...], got ", Str(x));
  }
  const Shape& in = x.shape();
  Shape sample = in;
  sample.set(0, 1);  // an empty batch has features too
  const Shape out = {in[0], sample.numel()};
  if (ctx.shape_only()) {
    Tensor y = ctx.Empty("flatten", out, x.dtype());
    ctx.Note("flatten", y, 0);
    return y;
  }
  absl::Status status;
  Tensor y = x.Detached();
  if (!IsPlainView(in)) {
    y = ctx.Empty("flatten", {in[0], in[3], in[1], in[2]}, x.dtype());
    if (!ctx.ok()) return Tensor();
    status = ctx.kernels().NhwcToNchw(x, y);
  }
  y = y.View(out);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y,
                [&] { return std::make_unique<FlattenNode>(in); });
}

}  // namespace troupe::nn::ops
