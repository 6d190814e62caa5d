#include "nn/kernels/reduction.h"

#include <vector>

#include "nn/kernels/reference/offsets.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct SumAxes {
  template <typename T>
  static absl::Status Run(In x, double divisor, Tensor& y) {
    // The loops go through x in its order, and through the matching elements of
    // y.
    const StridedLoops loops = BroadcastLoops(x.shape(), x.shape(), y.shape());
    std::vector<double> sums(y.numel(), 0.0);
    const T* from = x.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      sums[OffsetsOf(loops, i).b] += Load(from[i]);
    }
    T* to = y.data<T>();
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      to[i] = Store<T>(sums[i] / divisor);
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(ReductionKernels& ops) {
  BindFloating<SumAxes>(ops.SumAxes);
}

}  // namespace troupe::nn::reference
