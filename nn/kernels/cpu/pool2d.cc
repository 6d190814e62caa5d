#include "nn/kernels/cpu/row_slices.h"
#include "nn/kernels/cpu/window_shape.h"

namespace troupe::nn::cpu {
namespace {

// Returns the shape of the images of a slice.
ImageShape Of(const RowSlice& at, ImageShape shape) {
  shape.n = at.rows;
  return shape;
}

// Returns the slice's part of argmax, which has the pooled images' elements.
std::int32_t* ArgmaxAt(const RowSlice& at, const ImageShape& shape,
                       const Tensor& argmax) {
  return argmax.data<std::int32_t>() + at.first * shape.p * shape.q * shape.o;
}

absl::Status MaxPool2dForward(CpuDevice& cpu, const Window2d& window, In x,
                              Tensor& y, Tensor& argmax) {
  const ImageShape shape = ImageShapeOf(window, x.shape(), y.shape());
  return ForEachRowSlice(cpu, {shape.n}, {&x}, {&y}, [&](const RowSlice& at) {
    cpu.loops().max_pool_forward(Of(at, shape), at.in[0], at.out[0],
                                 ArgmaxAt(at, shape, argmax));
  });
}

absl::Status MaxPool2dBackward(CpuDevice& cpu, const Window2d& window, In dy,
                               In argmax, Tensor& dx) {
  const ImageShape shape = ImageShapeOf(window, dx.shape(), dy.shape());
  return ForEachRowSlice(cpu, {shape.n}, {&dy}, {&dx}, [&](const RowSlice& at) {
    cpu.loops().max_pool_backward(Of(at, shape), at.in[0],
                                  ArgmaxAt(at, shape, argmax), at.out[0]);
  });
}

bool CountsPadding(AvgDivisor divisor) {
  return divisor == AvgDivisor::kPaddedImage;
}

absl::Status AvgPool2dForward(CpuDevice& cpu, const Window2d& window,
                              AvgDivisor divisor, In x, Tensor& y) {
  const ImageShape shape = ImageShapeOf(window, x.shape(), y.shape());
  return ForEachRowSlice(cpu, {shape.n}, {&x}, {&y}, [&](const RowSlice& at) {
    cpu.loops().avg_pool_forward(Of(at, shape), CountsPadding(divisor),
                                 at.in[0], at.out[0]);
  });
}

absl::Status AvgPool2dBackward(CpuDevice& cpu, const Window2d& window,
                               AvgDivisor divisor, In dy, Tensor& dx) {
  const ImageShape shape = ImageShapeOf(window, dx.shape(), dy.shape());
  return ForEachRowSlice(cpu, {shape.n}, {&dy}, {&dx}, [&](const RowSlice& at) {
    cpu.loops().avg_pool_backward(Of(at, shape), CountsPadding(divisor),
                                  at.in[0], at.out[0]);
  });
}

absl::Status AdaptiveAvgPool2dForward(CpuDevice& cpu, In x, Tensor& y) {
  const ImageShape shape = ImageShapeOf(Window2d(), x.shape(), y.shape());
  return ForEachRowSlice(cpu, {shape.n}, {&x}, {&y}, [&](const RowSlice& at) {
    cpu.loops().adaptive_avg_pool_forward(Of(at, shape), at.in[0], at.out[0]);
  });
}

absl::Status AdaptiveAvgPool2dBackward(CpuDevice& cpu, In dy, Tensor& dx) {
  const ImageShape shape = ImageShapeOf(Window2d(), dx.shape(), dy.shape());
  return ForEachRowSlice(cpu, {shape.n}, {&dy}, {&dx}, [&](const RowSlice& at) {
    cpu.loops().adaptive_avg_pool_backward(Of(at, shape), at.in[0], at.out[0]);
  });
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, Pool2dKernels& ops) {
  BindByRows<MaxPool2dForward>(cpu, ops.MaxPool2dForward);
  BindByRows<MaxPool2dBackward>(cpu, ops.MaxPool2dBackward);
  BindByRows<AvgPool2dForward>(cpu, ops.AvgPool2dForward);
  BindByRows<AvgPool2dBackward>(cpu, ops.AvgPool2dBackward);
  BindByRows<AdaptiveAvgPool2dForward>(cpu, ops.AdaptiveAvgPool2dForward);
  BindByRows<AdaptiveAvgPool2dBackward>(cpu, ops.AdaptiveAvgPool2dBackward);
}

}  // namespace troupe::nn::cpu
