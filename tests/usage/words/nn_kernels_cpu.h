// Declares names that the usage comments in nn/kernels/cpu/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_KERNELS_CPU_H_
#define TESTS_USAGE_WORDS_NN_KERNELS_CPU_H_

#include "absl/status/status.h"
#include "nn/kernels/cpu/cpu_device.h"
#include "nn/kernels/cpu/window_shape.h"
#include "nn/kernels/kernels.h"
#include "nn/kernels/window2d.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::cpu::usage {

namespace functions_h {
extern const Vec x, dy;
}

namespace outer_loops_h {
extern const StridedLoops loops;
extern float *x, *y;
int CopyRow(const float* from, float* to);
}  // namespace outer_loops_h

namespace bf16_loops_h {
extern const std::uint16_t *x, *w;
extern std::uint16_t* y;
extern const int rows, cols, depth;
extern float* scratch;
extern const BF16Loops& loops;
}  // namespace bf16_loops_h

namespace bf16_kernels_h {
extern CpuDevice& cpu;
extern LinearKernels& ops;
inline absl::Status LinearForward(CpuDevice&, In, In, In, Tensor&) {
  return absl::OkStatus();
}
}  // namespace bf16_kernels_h

namespace row_slices_h {
extern CpuDevice& cpu;
extern ElementwiseKernels& ops;
extern Tensor y, dy, dx;
inline absl::Status ReluBackward(CpuDevice&, In, In, Tensor&) {
  return absl::OkStatus();
}
}  // namespace row_slices_h

namespace channel_scratch_h {
extern CpuDevice& cpu;
extern const std::int64_t rows, channels, c;
extern const float* x;
}  // namespace channel_scratch_h

namespace conv2d_h {
extern CpuDevice& cpu;
extern const Window2d window;
extern Tensor x, w, b, y;
extern absl::Status status;
}  // namespace conv2d_h

namespace linear_h {
extern CpuDevice& cpu;
extern Tensor pixels_NK, weights_MK, bias_M, result_NM;
}  // namespace linear_h

namespace loops_h {
extern const int n;
extern float *x, *y;
}  // namespace loops_h

namespace onednn_h {
extern Allocator& allocator;
extern const ImageShape shape;
extern float *x, *w, *y;
}  // namespace onednn_h

namespace product_h {
extern const int n, m, k;
}

namespace simd_h {
extern const float* x;
extern const int i, n;
extern const Vec a;
}  // namespace simd_h

namespace thin_product_h {
extern const int n, m, k;
}

namespace widening_h {
absl::Status ReluForward(CpuDevice& cpu, In x, Tensor& y);
extern CpuDevice& cpu;
extern Kernels& ops;
}  // namespace widening_h

namespace window_shape_h {
extern const Window2d window;
extern const Tensor x, y;
}  // namespace window_shape_h

}  // namespace troupe::nn::cpu::usage

#endif  // TESTS_USAGE_WORDS_NN_KERNELS_CPU_H_
