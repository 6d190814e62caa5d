#include "nn/kernels/matmul.h"

#include "nn/kernels/reference/offsets.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct MatMul {
  template <typename T>
  static absl::Status Run(MatMulForm form, In a, In b, Tensor& c) {
    const std::int64_t M = c.dim(-2), N = c.dim(-1);
    const std::int64_t K = a.dim(form.transpose_a ? -2 : -1);
    const StridedLoops batch =
        BroadcastMatrices(c.shape(), a.shape(), b.shape());
    for (std::int64_t i = 0; i < batch.numel(); ++i) {
      const Offsets at = OffsetsOf(batch, i);
      const T* left = a.data<T>() + at.a;
      const T* right = b.data<T>() + at.b;
      T* out = c.data<T>() + i * M * N;
      for (std::int64_t m = 0; m < M; ++m) {
        for (std::int64_t n = 0; n < N; ++n) {
          double sum = 0;
          for (std::int64_t k = 0; k < K; ++k) {
            sum += Load(left[form.transpose_a ? k * M + m : m * K + k]) *
                   Load(right[form.transpose_b ? n * K + k : k * N + n]);
          }
          out[m * N + n] = Store<T>(sum);
        }
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(MatMulKernels& ops) {
  BindFloating<MatMul>(ops.MatMul);
}

}  // namespace troupe::nn::reference
