#include "nn/kernels/cpu/cpu_kernel_set.h"

namespace troupe::nn::cpu {
namespace {

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
  loops_.conv_backward_weight(shape, x.data<float>(), dy.data<float>(),
                              accumulate, dw.data<float>(),
                              Scratch(loops_.conv_scratch(shape)));
  if (db.defined()) {
    loops_.column_sums(shape.n * shape.p * shape.q, shape.o, dy.data<float>(),
                       accumulate, db.data<float>());
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
