// The kernels of linear layers in f32, for others that come down to them: a
// convolution of single pixels calls them directly.
//
//   return LinearForward(cpu, pixels_NK, weights_MK, bias_M, result_NM);

#ifndef NN_KERNELS_CPU_LINEAR_H_
#define NN_KERNELS_CPU_LINEAR_H_

#include "nn/kernels/cpu/cpu_device.h"

namespace troupe::nn::cpu {

absl::Status LinearForward(CpuDevice& cpu, In x, In w, In b, Tensor& y);
absl::Status LinearBackwardInput(CpuDevice& cpu, In dy, In w, Tensor& dx);
absl::Status LinearBackwardWeight(CpuDevice& cpu, In x, In dy, bool accumulate,
                                  Tensor& dw, Tensor& db);

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_LINEAR_H_
