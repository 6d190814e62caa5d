#include "nn/kernels/cpu/widening.h"
#include "nn/kernels/cpu/window_shape.h"

namespace troupe::nn::cpu {
namespace {

absl::Status MaxPool2dForward(CpuDevice& cpu, const Window2d& window, In x,
                              Tensor& y, Tensor& argmax) {
  cpu.loops().max_pool_forward(ImageShapeOf(window, x.shape(), y.shape()),
                               x.data<float>(), y.data<float>(),
                               argmax.data<std::int32_t>());
  return absl::OkStatus();
}

absl::Status MaxPool2dBackward(CpuDevice& cpu, const Window2d& window, In dy,
                               In argmax, Tensor& dx) {
  cpu.loops().max_pool_backward(ImageShapeOf(window, dx.shape(), dy.shape()),
                                dy.data<float>(), argmax.data<std::int32_t>(),
                                dx.data<float>());
  return absl::OkStatus();
}

bool CountsPadding(AvgDivisor divisor) {
  return divisor == AvgDivisor::kPaddedImage;
}

absl::Status AvgPool2dForward(CpuDevice& cpu, const Window2d& window,
                              AvgDivisor divisor, In x, Tensor& y) {
  cpu.loops().avg_pool_forward(ImageShapeOf(window, x.shape(), y.shape()),
                               CountsPadding(divisor), x.data<float>(),
                               y.data<float>());
  return absl::OkStatus();
}

absl::Status AvgPool2dBackward(CpuDevice& cpu, const Window2d& window,
                               AvgDivisor divisor, In dy, Tensor& dx) {
  cpu.loops().avg_pool_backward(ImageShapeOf(window, dx.shape(), dy.shape()),
                                CountsPadding(divisor), dy.data<float>(),
                                dx.data<float>());
  return absl::OkStatus();
}

absl::Status AdaptiveAvgPool2dForward(CpuDevice& cpu, In x, Tensor& y) {
  cpu.loops().adaptive_avg_pool_forward(
      ImageShapeOf(Window2d(), x.shape(), y.shape()), x.data<float>(),
      y.data<float>());
  return absl::OkStatus();
}

absl::Status AdaptiveAvgPool2dBackward(CpuDevice& cpu, In dy, Tensor& dx) {
  cpu.loops().adaptive_avg_pool_backward(
      ImageShapeOf(Window2d(), dx.shape(), dy.shape()), dy.data<float>(),
      dx.data<float>());
  return absl::OkStatus();
}

}  // namespace

void BindPool2d(CpuDevice& cpu, Pool2dKernels& ops) {
  BindF32<MaxPool2dForward>(cpu, ops.MaxPool2dForward);
  BindF32<MaxPool2dBackward>(cpu, ops.MaxPool2dBackward);
  BindF32<AvgPool2dForward>(cpu, ops.AvgPool2dForward);
  BindF32<AvgPool2dBackward>(cpu, ops.AvgPool2dBackward);
  BindF32<AdaptiveAvgPool2dForward>(cpu, ops.AdaptiveAvgPool2dForward);
  BindF32<AdaptiveAvgPool2dBackward>(cpu, ops.AdaptiveAvgPool2dBackward);
}

}  // namespace troupe::nn::cpu
