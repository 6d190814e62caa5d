#include "nn/kernels/cpu/cpu_kernel_set.h"

namespace troupe::nn::cpu {
namespace {

using Way = OneDnn::Way;

// A 1x1 window over every pixel is a linear layer of the pixels.
bool IsPointwise(const ImageShape& d) {
  return d.r == 1 && d.s == 1 && d.stride_h == 1 && d.stride_w == 1 &&
         d.pad_h == 0 && d.pad_w == 0;
}

std::int64_t PixelsOut(const ImageShape& d) { return d.n * d.p * d.q; }

// x (N, H, W, C), y (N, P, Q, O).
ImageShape ShapeOf(const Window2d& window, const Shape& x, const Shape& y) {
  return {x[0],
          x[1],
          x[2],
          x[3],
          y[1],
          y[2],
          y[3],
          window.kernel_h,
          window.kernel_w,
          window.stride_h,
          window.stride_w,
          window.pad_h,
          window.pad_w};
}

}  // namespace

absl::Status CpuKernelSet::Conv2dForward(const Window2d& window,
                                         const Tensor& x, const Tensor& w,
                                         const Tensor& b, Tensor& y) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(
        Conv2dForward(window, wide.In(x), wide.In(w), wide.In(b), wide_y));
  }
  if (x.dtype() != DType::kF32) return Unsupported("Conv2dForward", x);
  const ImageShape shape = ShapeOf(window, x.shape(), y.shape());
  if (IsPointwise(shape)) {
    Tensor pixels = y.View({PixelsOut(shape), shape.o});
    return LinearForward(x.View({PixelsOut(shape), shape.c}),
                         w.View({shape.o, shape.c}), b, pixels);
  }
  if (uses_onednn_ && OneDnn::WantsConv(Way::kForward, shape)) {
    TROUPE_RETURN_IF_ERROR(GetOneDnn().Conv(Way::kForward, shape,
                                            x.data<float>(), w.data<float>(),
                                            y.data<float>()));
    if (b.defined()) {
      loops_.add_to_rows(PixelsOut(shape), shape.o, b.data<float>(),
                         y.data<float>());
    }
    return absl::OkStatus();
  }
  loops_.conv_forward(shape, x.data<float>(), w.data<float>(),
                      b.defined() ? b.data<float>() : nullptr, y.data<float>(),
                      Scratch(loops_.conv_scratch(shape)));
  return absl::OkStatus();
}

absl::Status CpuKernelSet::Conv2dBackwardInput(const Window2d& window,
                                               const Tensor& dy,
                                               const Tensor& w, Tensor& dx) {
  if (IsNarrow(dy)) {
    Widened wide(*this, allocator_);
    Tensor wide_dx = wide.Out(dx);
    return wide.Finish(
        Conv2dBackwardInput(window, wide.In(dy), wide.In(w), wide_dx));
  }
  if (dy.dtype() != DType::kF32) return Unsupported("Conv2dBackwardInput", dy);
  const ImageShape shape = ShapeOf(window, dx.shape(), dy.shape());
  if (IsPointwise(shape)) {
    Tensor pixels = dx.View({PixelsOut(shape), shape.c});
    return LinearBackwardInput(dy.View({PixelsOut(shape), shape.o}),
                               w.View({shape.o, shape.c}), pixels);
  }
  if (uses_onednn_ && OneDnn::WantsConv(Way::kBackwardInput, shape)) {
    return GetOneDnn().Conv(Way::kBackwardInput, shape, dy.data<float>(),
                            w.data<float>(), dx.data<float>());
  }
  loops_.conv_backward_input(shape, dy.data<float>(), w.data<float>(),
                             dx.data<float>(),
                             Scratch(loops_.conv_scratch(shape)));
  return absl::OkStatus();
}

absl::Status CpuKernelSet::Conv2dBackwardWeight(const Window2d& window,
                                                const Tensor& x,
                                                const Tensor& dy,
                                                bool accumulate, Tensor& dw,
                                                Tensor& db) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_dw = wide.Out(dw, accumulate);
    Tensor wide_db = wide.Out(db, accumulate);
    return wide.Finish(Conv2dBackwardWeight(window, wide.In(x), wide.In(dy),
                                            accumulate, wide_dw, wide_db));
  }
  if (x.dtype() != DType::kF32) return Unsupported("Conv2dBackwardWeight", x);
  const ImageShape shape = ShapeOf(window, x.shape(), dy.shape());
  if (IsPointwise(shape)) {
    Tensor weights = dw.View({shape.o, shape.c});
    return LinearBackwardWeight(x.View({PixelsOut(shape), shape.c}),
                                dy.View({PixelsOut(shape), shape.o}),
                                accumulate, weights, db);
  }
  TROUPE_RETURN_IF_ERROR(ConvBackwardWeight(shape, x, dy, accumulate, dw));
  if (db.defined()) {
    loops_.column_sums(shape.n * shape.p * shape.q, shape.o, dy.data<float>(),
                       accumulate, db.data<float>());
  }
  return absl::OkStatus();
}

absl::Status CpuKernelSet::ConvBackwardWeight(const ImageShape& shape,
                                              const Tensor& x, const Tensor& dy,
                                              bool accumulate, Tensor& dw) {
  if (!uses_onednn_ || !OneDnn::WantsConv(Way::kBackwardWeight, shape)) {
    loops_.conv_backward_weight(shape, x.data<float>(), dy.data<float>(),
                                accumulate, dw.data<float>(),
                                Scratch(loops_.conv_scratch(shape)));
    return absl::OkStatus();
  }
  float* result = accumulate ? Scratch(dw.numel()) : dw.data<float>();
  TROUPE_RETURN_IF_ERROR(GetOneDnn().Conv(
      Way::kBackwardWeight, shape, x.data<float>(), dy.data<float>(), result));
  if (accumulate) {
    loops_.add(dw.numel(), dw.data<float>(), result, dw.data<float>());
  }
  return absl::OkStatus();
}

absl::Status CpuKernelSet::MaxPool2dForward(const Window2d& window,
                                            const Tensor& x, Tensor& y,
                                            Tensor& argmax) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(MaxPool2dForward(window, wide.In(x), wide_y, argmax));
  }
  if (x.dtype() != DType::kF32) return Unsupported("MaxPool2dForward", x);
  loops_.max_pool_forward(ShapeOf(window, x.shape(), y.shape()),
                          x.data<float>(), y.data<float>(),
                          argmax.data<std::int32_t>());
  return absl::OkStatus();
}

absl::Status CpuKernelSet::MaxPool2dBackward(const Window2d& window,
                                             const Tensor& dy,
                                             const Tensor& argmax, Tensor& dx) {
  if (IsNarrow(dy)) {
    Widened wide(*this, allocator_);
    Tensor wide_dx = wide.Out(dx);
    return wide.Finish(MaxPool2dBackward(window, wide.In(dy), argmax, wide_dx));
  }
  if (dy.dtype() != DType::kF32) return Unsupported("MaxPool2dBackward", dy);
  loops_.max_pool_backward(ShapeOf(window, dx.shape(), dy.shape()),
                           dy.data<float>(), argmax.data<std::int32_t>(),
                           dx.data<float>());
  return absl::OkStatus();
}

absl::Status CpuKernelSet::AvgPool2dForward(const Window2d& window,
                                            const Tensor& x, Tensor& y) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(AvgPool2dForward(window, wide.In(x), wide_y));
  }
  if (x.dtype() != DType::kF32) return Unsupported("AvgPool2dForward", x);
  loops_.avg_pool_forward(ShapeOf(window, x.shape(), y.shape()),
                          x.data<float>(), y.data<float>());
  return absl::OkStatus();
}

absl::Status CpuKernelSet::AvgPool2dBackward(const Window2d& window,
                                             const Tensor& dy, Tensor& dx) {
  if (IsNarrow(dy)) {
    Widened wide(*this, allocator_);
    Tensor wide_dx = wide.Out(dx);
    return wide.Finish(AvgPool2dBackward(window, wide.In(dy), wide_dx));
  }
  if (dy.dtype() != DType::kF32) return Unsupported("AvgPool2dBackward", dy);
  loops_.avg_pool_backward(ShapeOf(window, dx.shape(), dy.shape()),
                           dy.data<float>(), dx.data<float>());
  return absl::OkStatus();
}

absl::Status CpuKernelSet::NhwcToNchw(const Tensor& x, Tensor& y) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(NhwcToNchw(wide.In(x), wide_y));
  }
  if (x.dtype() != DType::kF32) return Unsupported("NhwcToNchw", x);
  const std::int64_t pixels = x.dim(1) * x.dim(2), channels = x.dim(3);
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    loops_.transpose(pixels, channels, x.data<float>() + n * pixels * channels,
                     y.data<float>() + n * pixels * channels);
  }
  return absl::OkStatus();
}

absl::Status CpuKernelSet::NchwToNhwc(const Tensor& x, Tensor& y) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(NchwToNhwc(wide.In(x), wide_y));
  }
  if (x.dtype() != DType::kF32) return Unsupported("NchwToNhwc", x);
  const std::int64_t pixels = x.dim(2) * x.dim(3), channels = x.dim(1);
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    loops_.transpose(channels, pixels, x.data<float>() + n * pixels * channels,
                     y.data<float>() + n * pixels * channels);
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn::cpu
