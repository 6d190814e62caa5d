#include <vector>

#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct BiasForward {
  template <typename T>
  static absl::Status Run(In b_M, Tensor& y) {
    const T* b = b_M.data<T>();
    const std::int64_t M = b_M.dim(0);
    std::int64_t i = 0;
    for (T& value : y.span<T>()) {
      value = Store<T>(Load(value) + Load(b[i++ % M]));
    }
    return absl::OkStatus();
  }
};

struct BiasBackward {
  template <typename T>
  static absl::Status Run(In dy, bool accumulate, Tensor& db_M) {
    T* db = db_M.data<T>();
    const std::int64_t M = db_M.dim(0);
    std::vector<double> sums(static_cast<std::size_t>(M), 0.0);
    for (std::int64_t m = 0; accumulate && m < M; ++m) sums[m] = Load(db[m]);
    std::int64_t i = 0;
    for (const T& value : dy.span<T>()) sums[i++ % M] += Load(value);
    for (std::int64_t m = 0; m < M; ++m) db[m] = Store<T>(sums[m]);
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(BiasKernels& ops) {
  BindFloating<BiasForward>(ops.BiasForward);
  BindFloating<BiasBackward>(ops.BiasBackward);
}

}  // namespace troupe::nn::reference
