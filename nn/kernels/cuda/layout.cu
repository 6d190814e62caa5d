#include <algorithm>
#include <cstdint>

#include "nn/kernels/cuda/kernel_parts/cuda_ops.h"
#include "nn/kernels/cuda/kernel_parts/dispatch.h"
#include "nn/kernels/cuda/kernel_parts/transpose.h"

namespace troupe::nn::cuda {
namespace {

// Computes y[n] = x[n]^T for `batch` matrices x[n][rows, cols].
template <typename T>
absl::Status TransposeImages(base::KernelName name, const CudaOps& cuda,
                             std::int64_t batch, std::int64_t rows,
                             std::int64_t cols, In x, Tensor& y) {
  if (x.numel() == 0) return absl::OkStatus();
  using Word = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
  return TransposeBatch<KeepWord>(name, cuda.stream, batch, rows, cols,
                                  static_cast<const Word*>(x.device_data()),
                                  static_cast<Word*>(y.device_data()));
}

struct NhwcToNchw {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, Tensor& y) {
    return TransposeImages<T>("NhwcToNchw", cuda, x.dim(0), x.dim(1) * x.dim(2),
                              x.dim(3), x, y);
  }
};

struct NchwToNhwc {
  template <typename T>
  static absl::Status Run(const CudaOps& cuda, In x, Tensor& y) {
    return TransposeImages<T>("NchwToNhwc", cuda, x.dim(0), x.dim(1),
                              x.dim(2) * x.dim(3), x, y);
  }
};

}  // namespace

template <>
void BindFamily(LayoutKernels& ops, CudaOps* state) {
  BindFloating<NhwcToNchw>(ops.NhwcToNchw, state);
  BindFloating<NchwToNhwc>(ops.NchwToNhwc, state);
}

}  // namespace troupe::nn::cuda
