// Convolutions of f32 images on the cpu: dense ones, of which those in groups
// are made (docs/cpu_kernels.md says which kernel computes what).
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

// As linear layers of the unfolded windows.
absl::Status UnfoldedConv2dForward(CpuDevice& cpu, const ImageShape& shape,
                                   In x, In w, In b, Tensor& y);
absl::Status UnfoldedConv2dBackwardInput(CpuDevice& cpu,
                                         const ImageShape& shape, In dy, In w,
                                         Tensor& dx);
absl::Status UnfoldedConv2dBackwardWeight(CpuDevice& cpu,
                                          const ImageShape& shape, In x, In dy,
                                          bool accumulate, Tensor& dw,
                                          Tensor& db);

// At least two groups.
absl::Status GroupedConv2dForward(CpuDevice& cpu, const Window2d& window, In x,
                                  In w, In b, Tensor& y);
absl::Status GroupedConv2dBackwardInput(CpuDevice& cpu, const Window2d& window,
                                        In dy, In w, Tensor& dx);
absl::Status GroupedConv2dBackwardWeight(CpuDevice& cpu, const Window2d& window,
                                         In x, In dy, bool accumulate,
                                         Tensor& dw, Tensor& db);

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_CONV2D_H_
