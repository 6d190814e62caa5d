#include "nn/kernels/indexing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct SortAxis {
  template <typename T>
  static absl::Status Run(bool descending, In x, Tensor& y,
                          const Tensor& index) {
    const std::int64_t K = x.dim(1), I = x.dim(2), J = y.dim(1);
    for (std::int64_t column = 0; column < x.dim(0) * I; ++column) {
      const std::int64_t o = column / I, i = column % I;
      const T* const from = x.data<T>() + o * K * I + i;
      std::vector<std::int64_t> order(K);
      std::iota(order.begin(), order.end(), std::int64_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::int64_t p, std::int64_t q) {
                         double a = Load(from[p * I]), b = Load(from[q * I]);
                         if (descending) std::swap(a, b);
                         return std::isnan(b) ? !std::isnan(a) : a < b;
                       });
      for (std::int64_t j = 0; j < J; ++j) {
        const std::int64_t to = (o * J + j) * I + i;
        y.data<T>()[to] = from[order[j] * I];
        index.data<std::int64_t>()[to] = order[j];
      }
    }
    return absl::OkStatus();
  }
};

// Calls visit(x offset, y offset) for each index, where x[O, K, I] has the axis
// and y[O, J, I] an element for each index, in the order of y.
template <typename Visit>
absl::Status ForEachIndex(const Shape& x, const Tensor& index, const Shape& y,
                          Visit visit) {
  const std::int64_t K = x[1], J = y[1], I = y[2];
  for (std::int64_t to = 0; to < y.numel(); ++to) {
    const std::int64_t i = to % I, j = to / I % J, o = to / (I * J);
    const std::int64_t at =
        ((index.dim(0) == 1 ? 0 : o) * J + j) * index.dim(2) +
        (index.dim(2) == 1 ? 0 : i);
    const std::int64_t k = index.data<std::int64_t>()[at];
    if (k < 0 || k >= K) {
      return absl::OutOfRangeError(absl::StrCat(
          "index ", at, " is ", k, ", but the axis has ", K, " elements"));
    }
    visit((o * K + k) * I + i, to);
  }
  return absl::OkStatus();
}

// Copies elements of any dtype, as bytes.
template <typename ThisOp>
absl::Status GatherAxis(const ThisOp&, FixedIn x, FixedIn index, FixedOut y) {
  const std::size_t size = SizeOf(x.tensor.dtype());
  const char* const from = static_cast<const char*>(x.tensor.raw());
  char* const to = static_cast<char*>(y.tensor.raw());
  return ForEachIndex(x.tensor.shape(), index, y.tensor.shape(),
                      [&](std::int64_t of_x, std::int64_t of_y) {
                        std::memcpy(to + of_y * size, from + of_x * size, size);
                      });
}

struct ScatterAddAxis {
  template <typename T>
  static absl::Status Run(In x, const Tensor& index, bool accumulate,
                          Tensor& y) {
    std::vector<double> sums(y.numel(), 0.0);
    for (std::int64_t at = 0; at < y.numel() && accumulate; ++at) {
      sums[at] = Load(y.data<T>()[at]);
    }
    const absl::Status status = ForEachIndex(
        y.shape(), index, x.shape(), [&](std::int64_t of_y, std::int64_t of_x) {
          sums[of_y] += Load(x.data<T>()[of_x]);
        });
    for (std::int64_t at = 0; at < y.numel(); ++at) {
      y.data<T>()[at] = Store<T>(sums[at]);
    }
    return status;
  }
};

struct CumulativeSum {
  template <typename T>
  static absl::Status Run(bool from_last, In x, Tensor& y) {
    const std::int64_t K = x.dim(1), I = x.dim(2);
    for (std::int64_t column = 0; column < x.dim(0) * I; ++column) {
      const std::int64_t first = column / I * K * I + column % I;
      double sum = 0;
      for (std::int64_t k = 0; k < K; ++k) {
        const std::int64_t at = first + (from_last ? K - 1 - k : k) * I;
        sum += Load(x.data<T>()[at]);
        y.data<T>()[at] = Store<T>(sum);
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(IndexingKernels& ops) {
  BindFloating<SortAxis>(ops.SortAxis);
  ops.GatherAxis.BindFunction(GatherAxis, nullptr);
  BindFloating<ScatterAddAxis>(ops.ScatterAddAxis);
  BindFloating<CumulativeSum>(ops.CumulativeSum);
}

}  // namespace troupe::nn::reference
