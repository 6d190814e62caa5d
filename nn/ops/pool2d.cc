#include "nn/ops/pool2d.h"

#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class MaxPool2dNode final : public Node {
 public:
  MaxPool2dNode(const Window2d& window, const Shape& x, Tensor argmax)
      : window_(window), x_(x), argmax_(std::move(argmax)) {}
  const char* name() const override { return "max_pool2d"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_, dy.dtype(), kernels.allocator()));
    return kernels.MaxPool2dBackward(window_, dy, argmax_, dx[0]);
  }

 private:
  Window2d window_;
  Shape x_;
  Tensor argmax_;
};

class AvgPool2dNode final : public Node {
 public:
  AvgPool2dNode(const Window2d& window, const Shape& x)
      : window_(window), x_(x) {}
  const char* name() const override { return "avg_pool2d"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_, dy.dtype(), kernels.allocator()));
    return kernels.AvgPool2dBackward(window_, dy, dx[0]);
  }

 private:
  Window2d window_;
  Shape x_;
};

// The output's shape; rank 0 after an error.
Shape PooledShape(Context& ctx, const char* op, const Tensor& x,
                  const Window2d& window) {
  if (x.shape().rank() != 4) {
    BadShapes(ctx, op, " takes x[N, H, W, C], got ", Str(x));
    return {};
  }
  if (2 * window.pad_h > window.kernel_h ||
      2 * window.pad_w > window.kernel_w) {
    BadShapes(ctx, op, " takes a padding of at most half the kernel, got ",
              window.pad_h, "x", window.pad_w, " for ", window.kernel_h, "x",
              window.kernel_w);
    return {};
  }
  if (!Fits(window, x)) {
    BadShapes(ctx, op, " of ", window.kernel_h, "x", window.kernel_w,
              " does not fit into ", Str(x));
    return {};
  }
  return {x.dim(0), window.OutH(x.dim(1)), window.OutW(x.dim(2)), x.dim(3)};
}

}  // namespace

Tensor MaxPool2d(Context& ctx, const Tensor& x, const Window2d& window) {
  if (!ctx.ok()) return Tensor();
  const Shape out = PooledShape(ctx, "max_pool2d", x, window);
  if (!ctx.ok()) return Tensor();
  Tensor y = ctx.Empty("max_pool2d", out, x.dtype());
  ctx.Note("max_pool2d", y,
           1.0 * out.numel() * window.kernel_h * window.kernel_w);
  if (ctx.shape_only()) return y;
  Tensor argmax = ctx.Empty("max_pool2d", out, DType::kI32);
  if (!ctx.ok()) return Tensor();
  const absl::Status status =
      ctx.kernels().MaxPool2dForward(window, x, y, argmax);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<MaxPool2dNode>(window, x.shape(), argmax);
  });
}

Tensor AvgPool2d(Context& ctx, const Tensor& x, const Window2d& window) {
  if (!ctx.ok()) return Tensor();
  const Shape out = PooledShape(ctx, "avg_pool2d", x, window);
  if (!ctx.ok()) return Tensor();
  Tensor y = ctx.Empty("avg_pool2d", out, x.dtype());
  ctx.Note("avg_pool2d", y,
           1.0 * out.numel() * window.kernel_h * window.kernel_w);
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().AvgPool2dForward(window, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<AvgPool2dNode>(window, x.shape());
  });
}

}  // namespace troupe::nn::ops
