// Shared by the convolutions of images and signals: the node of the tape, the
// border in front, and the end of the forward. Signals are images of one row.

#ifndef NN_OPS_CONV_NODE_H_
#define NN_OPS_CONV_NODE_H_

#include <array>
#include <memory>
#include <utility>

#include "base/check.h"
#include "nn/ops/conv_options.h"
#include "nn/ops/op_util.h"

namespace troupe::nn::ops {

class ConvNode final : public Node {
 public:
  ConvNode(const char* name, const Window2d& window, Tensor x, Tensor w)
      : name_(name), window_(window), x_(std::move(x)), w_(std::move(w)) {}
  const char* name() const override { return name_; }

  absl::Status BackwardInputs(Kernels& kernels, const Tensor& dy,
                              absl::Span<const bool>,
                              absl::Span<Tensor> dx) override {
    TROUPE_ASSIGN_OR_RETURN(
        dx[0], Tensor::Create(x_.shape(), x_.dtype(), kernels.allocator()));
    Tensor images = AsImages(dx[0]);
    return kernels.Conv2dBackwardInput(window_, AsImages(dy), AsFilters(w_),
                                       images);
  }
  absl::Status BackwardWeights(Kernels& kernels, const Tensor& dy,
                               bool accumulate,
                               absl::Span<WeightGrad> grads) override {
    Tensor none;
    TROUPE_RETURN_IF_ERROR(EnsureWeightGrad(kernels, w_, grads[0]));
    Tensor dw = AsFilters(grads[0].grad);
    return kernels.Conv2dBackwardWeight(
        window_, AsImages(x_), AsImages(dy), accumulate, dw,
        grads.size() > 1 ? grads[1].grad : none);
  }

 private:
  const char* const name_;
  const Window2d window_;
  const Tensor x_, w_;
};

// The border that the options put around images, and the window for the image
// with its border: that window pads with zeros only.
struct ConvBorder {
  ConvBorder(const Window2d& given, const ConvOptions& options)
      : window(given) {
    const std::int64_t rows =
        options.same ? given.SpanH() - 1 : 2 * given.pad_h;
    const std::int64_t columns =
        options.same ? given.SpanW() - 1 : 2 * given.pad_w;
    padding = {rows / 2, rows - rows / 2, columns / 2, columns - columns / 2,
               options.padding_mode};
    // Zeros, as many on both sides, are the convolution's own padding.
    needed = options.padding_mode != PadMode::kZeros || rows % 2 != 0 ||
             columns % 2 != 0;
    window.pad_h = needed ? 0 : padding.top;
    window.pad_w = needed ? 0 : padding.left;
  }

  Window2d window;
  Padding2d padding;
  bool needed = false;
};

// Computes y, the convolution of x. The shapes are checked; `out` is y's.
inline Tensor Convolve(Context& ctx, const char* name, const Window2d& window,
                       const Tensor& x, const Tensor& w, const Tensor& b,
                       const Shape& out) {
  Tensor y = ctx.Empty(name, out, x.dtype());
  const double terms = static_cast<double>(w.numel()) / w.dim(0);
  ctx.Note(name, y, 2.0 * out.numel() * terms);
  if (!ctx.computes()) return y;
  Tensor images = AsImages(y);
  const absl::Status status =
      ctx.kernels().Conv2dForward(window, AsImages(x), AsFilters(w), b, images);
  const std::array<Tensor, 3> inputs = {x, w, b};
  const int weights = b.defined() ? 2 : 1;
  return Finish(ctx, status, absl::MakeSpan(inputs).first(1 + weights), weights,
                y,
                [&] { return std::make_unique<ConvNode>(name, window, x, w); });
}

}  // namespace troupe::nn::ops

#endif  // NN_OPS_CONV_NODE_H_
