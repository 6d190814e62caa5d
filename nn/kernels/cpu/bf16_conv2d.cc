#include "nn/kernels/cpu/bf16_kernels.h"
#include "nn/kernels/cpu/conv2d.h"
#include "nn/kernels/cpu/window_shape.h"

namespace troupe::nn::cpu {
namespace {

using Way = OneDnn::Way;

absl::StatusOr<Tensor> Converted(CpuDevice& cpu, const Tensor& t, DType dtype) {
  TROUPE_ASSIGN_OR_RETURN(Tensor copy,
                          Tensor::Create(t.shape(), dtype, cpu.allocator()));
  ConvertAny(cpu.loops(), t, copy);
  return copy;
}

// Returns the windows of x as rows of bf16.
absl::StatusOr<Tensor> Unfold(CpuDevice& cpu, const ImageShape& shape, In x) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor wide, Converted(cpu, x, DType::kF32));
  TROUPE_ASSIGN_OR_RETURN(const Tensor columns,
                          UnfoldWindows(cpu, shape, wide));
  return Converted(cpu, columns, DType::kBF16);
}

// Whether oneDNN computes this shape.
bool Wants(CpuDevice& cpu, Way way, const ImageShape& shape) {
  return cpu.uses_onednn() && OneDnn::WantsBF16Conv(way, shape);
}

absl::StatusOr<bool> UnfoldedBackwardInput(CpuDevice& cpu,
                                           const ImageShape& shape, In dy, In w,
                                           Tensor& dx) {
  const Tensor rows = WeightRows(w), pixels = PixelRows(dy);
  TROUPE_ASSIGN_OR_RETURN(
      Tensor columns, Tensor::Create({pixels.dim(0), rows.dim(1)}, DType::kF32,
                                     cpu.allocator()));
  TROUPE_ASSIGN_OR_RETURN(const bool computed,
                          LinearBackwardInputBF16(cpu, pixels, rows, columns));
  if (!computed) return false;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor wide, Tensor::Create(dx.shape(), DType::kF32, cpu.allocator()));
  TROUPE_RETURN_IF_ERROR(FoldWindows(cpu, shape, columns, wide));
  ConvertAny(cpu.loops(), wide, dx);
  return true;
}

// dw (+)= ..., rounded once.
absl::Status WeightsByOneDnn(CpuDevice& cpu, const ImageShape& shape, In x,
                             In dy, bool accumulate, Tensor& dw) {
  if (!accumulate) {
    return cpu.onednn().Conv(Way::kBackwardWeight, shape, BitsOf(x), BitsOf(dy),
                             /*bias=*/nullptr, BitsOf(dw));
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor sum, Converted(cpu, dw, DType::kF32));
  TROUPE_ASSIGN_OR_RETURN(float* const more, cpu.Scratch(dw.numel()));
  TROUPE_RETURN_IF_ERROR(
      cpu.onednn().ConvBackwardWeight(shape, BitsOf(x), BitsOf(dy), more));
  cpu.loops().add(sum.numel(), sum.data<float>(), more, sum.data<float>());
  ConvertAny(cpu.loops(), sum, dw);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> Conv2dForwardBF16(CpuDevice& cpu, const Window2d& window,
                                       In x, In w, In b, Tensor& y) {
  if (GroupsOf(x, w) != 1) return false;
  const ImageShape shape = ImageShapeOf(window, x.shape(), y.shape());
  if (IsPointwise(shape)) {
    Tensor pixels = PixelRows(y);
    return LinearForwardBF16(cpu, PixelRows(x), WeightRows(w), b, pixels);
  }
  if (IsUnfolded(shape)) {
    TROUPE_ASSIGN_OR_RETURN(const Tensor columns, Unfold(cpu, shape, x));
    Tensor pixels = PixelRows(y);
    return LinearForwardBF16(cpu, columns, WeightRows(w), b, pixels);
  }
  if (!Wants(cpu, Way::kForward, shape)) return false;
  TROUPE_RETURN_IF_ERROR(cpu.onednn().Conv(Way::kForward, shape, BitsOf(x),
                                           BitsOf(w), BitsOf(b), BitsOf(y)));
  return true;
}

absl::StatusOr<bool> Conv2dBackwardInputBF16(CpuDevice& cpu,
                                             const Window2d& window, In dy,
                                             In w, Tensor& dx) {
  if (GroupsOf(dx, w) != 1) return false;
  const ImageShape shape = ImageShapeOf(window, dx.shape(), dy.shape());
  if (IsPointwise(shape)) {
    Tensor pixels = PixelRows(dx);
    return LinearBackwardInputBF16(cpu, PixelRows(dy), WeightRows(w), pixels);
  }
  if (IsUnfolded(shape)) return UnfoldedBackwardInput(cpu, shape, dy, w, dx);
  if (!Wants(cpu, Way::kBackwardInput, shape)) return false;
  TROUPE_RETURN_IF_ERROR(cpu.onednn().Conv(Way::kBackwardInput, shape,
                                           BitsOf(dy), BitsOf(w),
                                           /*bias=*/nullptr, BitsOf(dx)));
  return true;
}

absl::StatusOr<bool> Conv2dBackwardWeightBF16(CpuDevice& cpu,
                                              const Window2d& window, In x,
                                              In dy, bool accumulate,
                                              Tensor& dw, Tensor& db) {
  if (GroupsOf(x, dw) != 1) return false;
  const ImageShape shape = ImageShapeOf(window, x.shape(), dy.shape());
  Tensor rows = WeightRows(dw);
  if (IsPointwise(shape)) {
    return LinearBackwardWeightBF16(cpu, PixelRows(x), PixelRows(dy),
                                    accumulate, rows, db);
  }
  if (IsUnfolded(shape)) {
    TROUPE_ASSIGN_OR_RETURN(const Tensor columns, Unfold(cpu, shape, x));
    return LinearBackwardWeightBF16(cpu, columns, PixelRows(dy), accumulate,
                                    rows, db);
  }
  if (!Wants(cpu, Way::kBackwardWeight, shape)) return false;
  TROUPE_RETURN_IF_ERROR(WeightsByOneDnn(cpu, shape, x, dy, accumulate, dw));
  if (db.defined()) {
    TROUPE_RETURN_IF_ERROR(ColumnSumsBF16(cpu, PixelRows(dy), accumulate, db));
  }
  return true;
}

}  // namespace troupe::nn::cpu
