#include "nn/ops/conv2d.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class Conv2dNode final : public Node {
 public:
  Conv2dNode(const Window2d& window, Tensor x, Tensor w)
      : window_(window), x_(std::move(x)), w_(std::move(w)) {}
  const char* name() const override { return "conv2d"; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    return kernels.Conv2dBackwardInput(window_, dy, w_, dx[0]);
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    Tensor none;
    TROUPE_RETURN_IF_ERROR(EnsureWeightGrad(kernels, w_, grads[0]));
    return kernels.Conv2dBackwardWeight(
        window_, x_, dy, accumulate, grads[0].grad,
        grads.size() > 1 ? grads[1].grad : none);
  }

 private:
  Window2d window_;
  Tensor x_, w_;
};

}  // namespace

Tensor Conv2d(Context& ctx, const Tensor& x, const Tensor& w, const Tensor& b,
              const Window2d& window) {
  if (!ctx.ok()) return Tensor();
  if (x.shape().rank() != 4 || w.shape().rank() != 4 || x.dim(3) != w.dim(1) ||
      x.dtype() != w.dtype() || w.dim(2) != window.kernel_h ||
      w.dim(3) != window.kernel_w) {
    return BadShapes(
        ctx, "conv2d takes x[N, H, W, C] and w[O, C, R, S] of one dtype, got ",
        Str(x), " and ", Str(w));
  }
  if (!IsBiasOf(w, b)) {
    return BadShapes(ctx, "conv2d takes a bias of ", DTypeName(w.dtype()), "[",
                     w.dim(0), "], got ", Str(b));
  }
  if (!Fits(window, x)) {
    return BadShapes(ctx, "conv2d of ", window.kernel_h, "x", window.kernel_w,
                     " does not fit into ", Str(x));
  }
  const Shape out = {x.dim(0), window.OutH(x.dim(1)), window.OutW(x.dim(2)),
                     w.dim(0)};
  Tensor y = ctx.Empty("conv2d", out, x.dtype());
  ctx.Note("conv2d", y, 2.0 * out.numel() * w.dim(1) * w.dim(2) * w.dim(3));
  if (!ctx.computes()) return y;
  const absl::Status status = ctx.kernels().Conv2dForward(window, x, w, b, y);
  const std::array<Tensor, 3> inputs = {x, w, b};
  const int weights = b.defined() ? 2 : 1;
  return Finish(ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights,
                y, [&] { return std::make_unique<Conv2dNode>(window, x, w); });
}

}  // namespace troupe::nn::ops
