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

// Whether `x` takes the place of `best`.
bool Beats(bool largest, double x, double best) {
  if (x != x) return best == best;
  return largest ? x > best : x < best;
}

struct ExtremeOfAxis {
  template <typename T>
  static absl::Status Run(bool largest, In x, Tensor& y, const Tensor& index) {
    const std::int64_t K = x.dim(1), I = x.dim(2);
    for (std::int64_t o = 0; o < x.dim(0); ++o) {
      for (std::int64_t i = 0; i < I; ++i) {
        const T* const from = x.data<T>() + o * K * I + i;
        std::int64_t best = 0;
        for (std::int64_t k = 1; k < K; ++k) {
          if (Beats(largest, Load(from[k * I]), Load(from[best * I]))) best = k;
        }
        y.data<T>()[o * I + i] = from[best * I];
        index.data<std::int64_t>()[o * I + i] = best;
      }
    }
    return absl::OkStatus();
  }
};

struct PlaceAlongAxis {
  template <typename T>
  static absl::Status Run(In x, const Tensor& index, Tensor& y) {
    const std::int64_t K = y.dim(1), I = y.dim(2);
    for (std::int64_t at = 0; at < y.numel(); ++at) {
      const std::int64_t i = at % I, k = at / I % K, o = at / (I * K);
      const bool here = index.data<std::int64_t>()[o * I + i] == k;
      y.data<T>()[at] = here ? x.data<T>()[o * I + i] : Store<T>(0);
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(ReductionKernels& ops) {
  BindFloating<SumAxes>(ops.SumAxes);
  BindFloating<ExtremeOfAxis>(ops.ExtremeOfAxis);
  BindFloating<PlaceAlongAxis>(ops.PlaceAlongAxis);
}

}  // namespace troupe::nn::reference
