#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct NhwcToNchw {
  template <typename T>
  static absl::Status Run(In x, Tensor& y) {
    const std::int64_t N = x.dim(0), pixels = x.dim(1) * x.dim(2), C = x.dim(3);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t c = 0; c < C; ++c) {
        for (std::int64_t i = 0; i < pixels; ++i) {
          out[(n * C + c) * pixels + i] = in[(n * pixels + i) * C + c];
        }
      }
    }
    return absl::OkStatus();
  }
};

struct NchwToNhwc {
  template <typename T>
  static absl::Status Run(In x, Tensor& y) {
    const std::int64_t N = x.dim(0), C = x.dim(1), pixels = x.dim(2) * x.dim(3);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t i = 0; i < pixels; ++i) {
        for (std::int64_t c = 0; c < C; ++c) {
          out[(n * pixels + i) * C + c] = in[(n * C + c) * pixels + i];
        }
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(LayoutKernels& ops) {
  BindFloating<NhwcToNchw>(ops.NhwcToNchw);
  BindFloating<NchwToNhwc>(ops.NchwToNhwc);
}

}  // namespace troupe::nn::reference
