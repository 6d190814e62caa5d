#include "nn/kernels/cpu/conv2d.h"

#include "nn/kernels/cpu/bf16_kernels.h"
#include "nn/kernels/cpu/linear.h"
#include "nn/kernels/cpu/widening.h"
#include "nn/kernels/cpu/window_shape.h"

namespace troupe::nn::cpu {
namespace {

using Way = OneDnn::Way;

std::int64_t PixelsOut(const ImageShape& d) { return d.n * d.p * d.q; }

// dw (+)= ...; by oneDNN or the loops here.
absl::Status WeightsOnly(CpuDevice& cpu, const ImageShape& shape, In x, In dy,
                         bool accumulate, Tensor& dw) {
  if (!cpu.uses_onednn() || !OneDnn::WantsConv(Way::kBackwardWeight, shape)) {
    TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                            cpu.Scratch(cpu.loops().conv_scratch(shape)));
    cpu.loops().conv_backward_weight(shape, x.data<float>(), dy.data<float>(),
                                     accumulate, dw.data<float>(), scratch);
    return absl::OkStatus();
  }
  float* result = dw.data<float>();
  if (accumulate) {
    TROUPE_ASSIGN_OR_RETURN(result, cpu.Scratch(dw.numel()));
  }
  TROUPE_RETURN_IF_ERROR(cpu.onednn().Conv(
      Way::kBackwardWeight, shape, x.data<float>(), dy.data<float>(), result));
  if (accumulate) {
    cpu.loops().add(dw.numel(), dw.data<float>(), result, dw.data<float>());
  }
  return absl::OkStatus();
}

}  // namespace

bool IsPointwise(const ImageShape& d) {
  return d.r == 1 && d.s == 1 && d.stride_h == 1 && d.stride_w == 1 &&
         d.pad_h == 0 && d.pad_w == 0;
}

bool IsUnfolded(const ImageShape& d) {
  constexpr std::int64_t kWeightsMin = std::int64_t{1} << 18, kPixelsMax = 64;
  return d.n > 0 && d.n * d.p * d.q <= kPixelsMax &&
         d.o * d.c * d.r * d.s >= kWeightsMin;
}

absl::Status DenseConv2dForward(CpuDevice& cpu, const Window2d& window, In x,
                                In w, In b, Tensor& y) {
  const ImageShape shape = ImageShapeOf(window, x.shape(), y.shape());
  if (IsPointwise(shape)) {
    Tensor pixels = y.View({PixelsOut(shape), shape.o});
    return LinearForward(cpu, x.View({PixelsOut(shape), shape.c}),
                         w.View({shape.o, shape.c}), b, pixels);
  }
  if (IsUnfolded(shape)) return UnfoldedConv2dForward(cpu, shape, x, w, b, y);
  if (cpu.uses_onednn() && OneDnn::WantsConv(Way::kForward, shape)) {
    TROUPE_RETURN_IF_ERROR(cpu.onednn().Conv(Way::kForward, shape,
                                             x.data<float>(), w.data<float>(),
                                             y.data<float>()));
    if (b.defined()) {
      cpu.loops().add_to_rows(PixelsOut(shape), shape.o, b.data<float>(),
                              y.data<float>());
    }
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().conv_scratch(shape)));
  cpu.loops().conv_forward(shape, x.data<float>(), w.data<float>(),
                           DataOrNull(b), y.data<float>(), scratch);
  return absl::OkStatus();
}

absl::Status DenseConv2dBackwardInput(CpuDevice& cpu, const Window2d& window,
                                      In dy, In w, Tensor& dx) {
  const ImageShape shape = ImageShapeOf(window, dx.shape(), dy.shape());
  if (IsPointwise(shape)) {
    Tensor pixels = dx.View({PixelsOut(shape), shape.c});
    return LinearBackwardInput(cpu, dy.View({PixelsOut(shape), shape.o}),
                               w.View({shape.o, shape.c}), pixels);
  }
  if (IsUnfolded(shape)) {
    return UnfoldedConv2dBackwardInput(cpu, shape, dy, w, dx);
  }
  if (cpu.uses_onednn() && OneDnn::WantsConv(Way::kBackwardInput, shape)) {
    return cpu.onednn().Conv(Way::kBackwardInput, shape, dy.data<float>(),
                             w.data<float>(), dx.data<float>());
  }
  TROUPE_ASSIGN_OR_RETURN(float* const scratch,
                          cpu.Scratch(cpu.loops().conv_scratch(shape)));
  cpu.loops().conv_backward_input(shape, dy.data<float>(), w.data<float>(),
                                  dx.data<float>(), scratch);
  return absl::OkStatus();
}

absl::Status DenseConv2dBackwardWeight(CpuDevice& cpu, const Window2d& window,
                                       In x, In dy, bool accumulate, Tensor& dw,
                                       Tensor& db) {
  const ImageShape shape = ImageShapeOf(window, x.shape(), dy.shape());
  if (IsPointwise(shape)) {
    Tensor weights = dw.View({shape.o, shape.c});
    return LinearBackwardWeight(cpu, x.View({PixelsOut(shape), shape.c}),
                                dy.View({PixelsOut(shape), shape.o}),
                                accumulate, weights, db);
  }
  if (IsUnfolded(shape)) {
    return UnfoldedConv2dBackwardWeight(cpu, shape, x, dy, accumulate, dw, db);
  }
  TROUPE_RETURN_IF_ERROR(WeightsOnly(cpu, shape, x, dy, accumulate, dw));
  if (db.defined()) {
    cpu.loops().column_sums(shape.n * shape.p * shape.q, shape.o,
                            dy.data<float>(), accumulate, db.data<float>());
  }
  return absl::OkStatus();
}

namespace {

absl::Status Conv2dForward(CpuDevice& cpu, const Window2d& window, In x, In w,
                           In b, Tensor& y) {
  return GroupsOf(x, w) == 1 ? DenseConv2dForward(cpu, window, x, w, b, y)
                             : GroupedConv2dForward(cpu, window, x, w, b, y);
}

absl::Status Conv2dBackwardInput(CpuDevice& cpu, const Window2d& window, In dy,
                                 In w, Tensor& dx) {
  return GroupsOf(dx, w) == 1
             ? DenseConv2dBackwardInput(cpu, window, dy, w, dx)
             : GroupedConv2dBackwardInput(cpu, window, dy, w, dx);
}

absl::Status Conv2dBackwardWeight(CpuDevice& cpu, const Window2d& window, In x,
                                  In dy, bool accumulate, Tensor& dw,
                                  Tensor& db) {
  return GroupsOf(x, dw) == 1
             ? DenseConv2dBackwardWeight(cpu, window, x, dy, accumulate, dw, db)
             : GroupedConv2dBackwardWeight(cpu, window, x, dy, accumulate, dw,
                                           db);
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, Conv2dKernels& ops) {
  BindF32AndBF16<Conv2dForward, Conv2dForwardBF16>(cpu, ops.Conv2dForward);
  BindF32AndBF16<Conv2dBackwardInput, Conv2dBackwardInputBF16>(
      cpu, ops.Conv2dBackwardInput);
  BindF32AndBF16<Conv2dBackwardWeight, Conv2dBackwardWeightBF16>(
      cpu, ops.Conv2dBackwardWeight);
}

}  // namespace troupe::nn::cpu
