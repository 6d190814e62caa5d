#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

absl::Status NhwcToNchw(CpuDevice& cpu, In x, Tensor& y) {
  const std::int64_t pixels = x.dim(1) * x.dim(2), channels = x.dim(3);
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    cpu.loops().transpose(pixels, channels,
                          x.data<float>() + n * pixels * channels,
                          y.data<float>() + n * pixels * channels);
  }
  return absl::OkStatus();
}

absl::Status NchwToNhwc(CpuDevice& cpu, In x, Tensor& y) {
  const std::int64_t pixels = x.dim(2) * x.dim(3), channels = x.dim(1);
  for (std::int64_t n = 0; n < x.dim(0); ++n) {
    cpu.loops().transpose(channels, pixels,
                          x.data<float>() + n * pixels * channels,
                          y.data<float>() + n * pixels * channels);
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, LayoutKernels& ops) {
  BindF32<NhwcToNchw>(cpu, ops.NhwcToNchw);
  BindF32<NchwToNhwc>(cpu, ops.NchwToNhwc);
}

}  // namespace troupe::nn::cpu
