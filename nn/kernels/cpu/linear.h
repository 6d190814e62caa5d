// The kernels of linear layers in f32, for kernels that use them: a convolution
// of single pixels calls them directly.
//
//   return LinearForward(cpu, pixels_NK, weights_MK, bias_M, result_NM);

#ifndef NN_KERNELS_CPU_LINEAR_H_
#define NN_KERNELS_CPU_LINEAR_H_

#include <cstdint>

#include "nn/kernels/cpu/cpu_device.h"
#include "nn/kernels/linear.h"

namespace troupe::nn::cpu {

absl::Status LinearForward(CpuDevice& cpu, In x, In w, In b, Tensor& y);
absl::Status LinearBackwardInput(CpuDevice& cpu, In dy, In w, Tensor& dx);
absl::Status LinearBackwardWeight(CpuDevice& cpu, In x, In dy, bool accumulate,
                                  Tensor& dw, Tensor& db);
absl::Status LinearBackwardWeightRows(CpuDevice& cpu, In x, In dy,
                                      std::int64_t begin, Tensor& dw);
absl::Status LinearForwardTerms(CpuDevice& cpu, In x, In w, TermRange terms,
                                Tensor& y);
absl::Status LinearBackwardInputTerms(CpuDevice& cpu, In dy, In w,
                                      TermRange terms, bool accumulate,
                                      Tensor& dx);
// Implements Kernels::LinearGradientRows.
std::int64_t LinearGradientRows(const CpuDevice& cpu, DType dtype,
                                std::int64_t n, std::int64_t k, std::int64_t m);

}  // namespace troupe::nn::cpu

#endif  // NN_KERNELS_CPU_LINEAR_H_
