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
  AvgPool2dNode(const Window2d& window, AvgDivisor divisor, const Shape& x)
      : window_(window), divisor_(divisor), x_(x) {}
  const char* name() const override { return "avg_pool2d"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_, dy.dtype(), kernels.allocator()));
    return kernels.AvgPool2dBackward(window_, divisor_, dy, dx[0]);
  }

 private:
  Window2d window_;
  AvgDivisor divisor_;
  Shape x_;
};

class AdaptiveAvgPool2dNode final : public Node {
 public:
  explicit AdaptiveAvgPool2dNode(const Shape& x) : x_(x) {}
  const char* name() const override { return "adaptive_avg_pool2d"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_, dy.dtype(), kernels.allocator()));
    return kernels.AdaptiveAvgPool2dBackward(dy, dx[0]);
  }

 private:
  Shape x_;
};

// Returns the number of windows along an axis. With `ceil_mode` it is one more
// if pixels are left and the window begins before the end of the image (and the
// padding in front of it).
std::int64_t Windows(std::int64_t extent, std::int64_t kernel,
                     std::int64_t stride, std::int64_t pad, bool ceil_mode) {
  const std::int64_t left = extent + 2 * pad - kernel;
  const std::int64_t whole = left / stride + 1;
  const bool more =
      ceil_mode && left % stride != 0 && whole * stride < extent + pad;
  return more ? whole + 1 : whole;
}

// Returns the output's shape; rank 0 after an error.
Shape PooledShape(Context& ctx, const char* op, const Tensor& x,
                  const Window2d& window, bool ceil_mode) {
  if (x.shape().rank() != 4) {
    BadShapes(ctx, op, " takes x[N, H, W, C], got ", Str(x));
    return {};
  }
  if (window.dilation_h != 1 || window.dilation_w != 1) {
    BadShapes(ctx, op, " takes a window without dilation, got ",
              window.dilation_h, "x", window.dilation_w);
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
  return {x.dim(0),
          Windows(x.dim(1), window.kernel_h, window.stride_h, window.pad_h,
                  ceil_mode),
          Windows(x.dim(2), window.kernel_w, window.stride_w, window.pad_w,
                  ceil_mode),
          x.dim(3)};
}

}  // namespace

Tensor MaxPool2d(Context& ctx, const Tensor& x, const Window2d& window,
                 const MaxPoolOptions& options) {
  if (!ctx.ok()) return Tensor();
  const Shape out =
      PooledShape(ctx, "max_pool2d", x, window, options.ceil_mode);
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

Tensor AvgPool2d(Context& ctx, const Tensor& x, const Window2d& window,
                 const AvgPoolOptions& options) {
  if (!ctx.ok()) return Tensor();
  const Shape out =
      PooledShape(ctx, "avg_pool2d", x, window, options.ceil_mode);
  if (!ctx.ok()) return Tensor();
  Tensor y = ctx.Empty("avg_pool2d", out, x.dtype());
  ctx.Note("avg_pool2d", y,
           1.0 * out.numel() * window.kernel_h * window.kernel_w);
  if (!ctx.computes()) return y;
  const AvgDivisor divisor =
      options.count_include_pad ? AvgDivisor::kPaddedImage : AvgDivisor::kImage;
  const absl::Status status =
      ctx.kernels().AvgPool2dForward(window, divisor, x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<AvgPool2dNode>(window, divisor, x.shape());
  });
}

Tensor AdaptiveAvgPool2d(Context& ctx, const Tensor& x, std::int64_t rows,
                         std::int64_t columns) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() != 4 || rows < 1 || columns < 1 || x.dim(1) < 1 ||
      x.dim(2) < 1) {
    return BadShapes(ctx,
                     "adaptive_avg_pool2d takes x[N, H, W, C] and at least one "
                     "output, got ",
                     Str(x), " and ", rows, "x", columns);
  }
  const Shape out = {x.dim(0), rows, columns, x.dim(3)};
  Tensor y = ctx.Empty("adaptive_avg_pool2d", out, x.dtype());
  ctx.Note("adaptive_avg_pool2d", y, 1.0 * x.numel());
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().AdaptiveAvgPool2dForward(x, y);
  return Finish(ctx, status, {x}, /*num_weights=*/0, y, [&] {
    return std::make_unique<AdaptiveAvgPool2dNode>(x.shape());
  });
}

}  // namespace troupe::nn::ops
