#include "nn/ops/conv_transpose2d.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {
namespace {

class ConvTransposeNode final : public Node {
 public:
  ConvTransposeNode(const char* name, const Window2d& window, Tensor x,
                    Tensor w)
      : name_(name), window_(window), x_(std::move(x)), w_(std::move(w)) {}
  const char* name() const override { return name_; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    Tensor images = AsImages(dx[0]);
    return kernels.Conv2dForward(window_, AsImages(dy), AsFilters(w_),
                                 /*b=*/Tensor(), images);
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    Tensor none;
    TROUPE_RETURN_IF_ERROR(EnsureWeightGrad(kernels, w_, grads[0]));
    Tensor dw = AsFilters(grads[0].grad);
    TROUPE_RETURN_IF_ERROR(kernels.Conv2dBackwardWeight(
        window_, /*x=*/AsImages(dy), /*dy=*/AsImages(x_), accumulate, dw,
        none));
    if (grads.size() < 2 || !grads[1].wanted()) return absl::OkStatus();
    return kernels.BiasBackward(dy, accumulate, grads[1].grad);
  }

 private:
  const char* const name_;
  const Window2d window_;
  const Tensor x_, w_;
};

absl::Status Forward(Kernels& kernels, const Window2d& window, const Tensor& x,
                     const Tensor& w, const Tensor& b, Tensor& y) {
  Tensor images = AsImages(y);
  TROUPE_RETURN_IF_ERROR(
      kernels.Conv2dBackwardInput(window, AsImages(x), AsFilters(w), images));
  return b.defined() ? kernels.BiasForward(b, y) : absl::OkStatus();
}

// One axis of x, which has `in` pixels.
struct Axis {
  std::int64_t in, kernel, stride, pad, dilation, output_padding;

  bool IsSound() const {
    return in >= 1 && kernel >= 1 && stride >= 1 && pad >= 0 && dilation >= 1 &&
           output_padding >= 0 && output_padding < stride && Out() >= 1;
  }
  std::int64_t Out() const {
    return (in - 1) * stride - 2 * pad + dilation * (kernel - 1) +
           output_padding + 1;
  }
};

// Ends both forwards, which have checked the ranks of x and w. `letters`
// describes the operands in errors.
Tensor Transposed(Context& ctx, const char* name, const char* letters,
                  const Window2d& window, const ConvTransposeOptions& options,
                  const Tensor& x, const Tensor& w, const Tensor& b) {
  const std::int64_t groups = options.groups;
  if (x.dim(-1) != w.dim(0) || x.dtype() != w.dtype() || groups < 1 ||
      w.dim(1) < 1 || w.dim(0) < 1 || w.dim(0) % groups != 0) {
    return BadShapes(ctx, name, " in ", groups, " groups takes ", letters,
                     " of one dtype, got ", Str(x), " and ", Str(w));
  }
  const std::int64_t O = w.dim(1) * groups;
  if (b.defined() && (b.shape() != Shape{O} || b.dtype() != w.dtype())) {
    return BadShapes(ctx, name, " takes a bias of ", DTypeName(w.dtype()), "[",
                     O, "], got ", Str(b));
  }
  const bool signals = x.shape().rank() == 3;
  const Axis rows = {signals ? 1 : x.dim(1), window.kernel_h,
                     window.stride_h,        window.pad_h,
                     window.dilation_h,      options.output_padding_h};
  const Axis columns = {x.dim(-2),         window.kernel_w,
                        window.stride_w,   window.pad_w,
                        window.dilation_w, options.output_padding_w};
  if (!rows.IsSound() || !columns.IsSound()) {
    return BadShapes(ctx, name, " of ", Str(w), " has no result for ", Str(x),
                     ", or an output_padding that is not below its stride");
  }
  const Shape out = signals ? Shape{x.dim(0), columns.Out(), O}
                            : Shape{x.dim(0), rows.Out(), columns.Out(), O};
  Tensor y = ctx.Empty(name, out, x.dtype());
  const double terms = static_cast<double>(w.numel()) / w.dim(0);
  ctx.Note(name, y, 2.0 * x.numel() * terms);
  if (!ctx.computes()) return y;
  const absl::Status status = Forward(ctx.kernels(), window, x, w, b, y);
  const std::array<Tensor, 3> inputs = {x, w, b};
  const int weights = b.defined() ? 2 : 1;
  return Finish(
      ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights, y,
      [&] { return std::make_unique<ConvTransposeNode>(name, window, x, w); });
}

}  // namespace

Tensor ConvTranspose2d(Context& ctx, const Tensor& x, const Tensor& w,
                       const Tensor& b, const Window2d& window,
                       const ConvTransposeOptions& options) {
  if (!ctx.ok()) return Tensor();
  constexpr const char* kLetters = "x[N, H, W, C] and w[C, O / groups, R, S]";
  if (x.shape().rank() != 4 || w.shape().rank() != 4 ||
      w.dim(2) != window.kernel_h || w.dim(3) != window.kernel_w) {
    return BadShapes(ctx, "conv_transpose2d of ", window.kernel_h, "x",
                     window.kernel_w, " takes ", kLetters, ", got ", Str(x),
                     " and ", Str(w));
  }
  return Transposed(ctx, "conv_transpose2d", kLetters, window, options, x, w,
                    b);
}

Tensor ConvTranspose1d(Context& ctx, const Tensor& x, const Tensor& w,
                       const Tensor& b, const Window1d& window,
                       const ConvTransposeOptions& options) {
  if (!ctx.ok()) return Tensor();
  constexpr const char* kLetters = "x[N, L, C] and w[C, O / groups, K]";
  if (x.shape().rank() != 3 || w.shape().rank() != 3 ||
      w.dim(2) != window.kernel) {
    return BadShapes(ctx, "conv_transpose1d of ", window.kernel, " takes ",
                     kLetters, ", got ", Str(x), " and ", Str(w));
  }
  return Transposed(ctx, "conv_transpose1d", kLetters, window.AsRow(), options,
                    x, w, b);
}

}  // namespace troupe::nn::ops
