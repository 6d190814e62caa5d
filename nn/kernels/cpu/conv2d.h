// Convolutions of f32 images on the cpu: dense ones, and grouped ones made of
// them (docs/cpu_kernels.md says which kernel computes what).
//
//   status = DenseConv2dForward(cpu, window, x, w, b, y);    // w[O, C, R, S]
//   status = GroupedConv2dForward(cpu, window, x, w, b, y);  // w[O, C/G, R, S]
//
// Letters, undefined tensors and errors are those of nn/kernels/conv2d.h.
// Threads and memory: cpu_device.h.

#ifndef NN_KERNELS_CPU_CONV2D_H_
#define NN_KERNELS_CPU_CONV2D_H_

#include "nn/kernels/cpu/cpu_device.h"

namespace troupe::nn::cpu {

absl::Status DenseConv2dForward(CpuDevice& cpu, const Window2d& window, In x,
                                In w, In b, Tensor& y);
absl::Status DenseConv2dBackwardInput(CpuDevice& cpu, const Window2d& window,
                                      In dy, In w, Tensor& dx);
absl::Status DenseConv2dBackwardWeight(CpuDevice& cpu, const Window2d& window,
                                       In x, In dy, bool accumulate, Tensor& dw,
                                       Tensor& db);

// Whether it is a 1x1 window over every pixel: a linear layer of the pixels.
bool IsPointwise(const ImageShape& shape);
// Whether the weights are large and the pixels few, so that reordering the
// weights would cost as much as the arithmetic.
bool IsUnfolded(const ImageShape& shape);

// Returns the windows of x as rows [C, R, S] of one matrix (im2col).
absl::StatusOr<Tensor> UnfoldWindows(CpuDevice& cpu, const ImageShape& shape,
                                     In x);
// Sums the rows of such a matrix into dx (col2im).
absl::Status FoldWindows(CpuDevice& cpu, const ImageShape& shape,
                         const Tensor& columns, Tensor& dx);
// View images (N, H, W, C) as [N H W, C], and weights as [O, C R S].
inline Tensor PixelRows(const Tensor& images) {
  return images.View(
      {images.dim(0) * images.dim(1) * images.dim(2), images.dim(3)});
}
inline Tensor WeightRows(const Tensor& w) {
  return w.View({w.dim(0), w.dim(1) * w.dim(2) * w.dim(3)});
}

// Compute convolutions as linear layers of the unfolded windows.
absl::Status UnfoldedConv2dForward(CpuDevice& cpu, const ImageShape& shape,
                                   In x, In w, In b, Tensor& y);
absl::Status UnfoldedConv2dBackwardInput(CpuDevice& cpu,
                                         const ImageShape& shape, In dy, In w,
                                         Tensor& dx);
absl::Status UnfoldedConv2dBackwardWeight(CpuDevice& cpu,
                                          const ImageShape& shape, In x, In dy,
                                          bool accumulate, Tensor& dw,
                                          Tensor& db);

// Compute convolutions of at least two groups.
absl::Status GroupedConv2dForward(CpuDevice& cpu, const Window2d& window, In x,
                                  In w, In b, Tensor& y);
absl::Status GroupedConv2dBackwardInput(CpuDevice& cpu, const Window2d& window,
                                        In dy, In w, Tensor& dx);
absl::Status GroupedConv2dBackwardWeight(CpuDevice& cpu, const Window2d& window,
                                         In x, In dy, bool accumulate,
                                         Tensor& dw, Tensor& db);

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CONV2D_H_
