#include "nn/kernels/indexing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/kernels/cpu/widening.h"

// Letters: those of nn/kernels/indexing.h.

namespace troupe::nn::cpu {
namespace {

struct Keyed {
  float value;
  std::int64_t place;
};

// A total order, so that every algorithm gives the same result. No comparison
// with a NaN holds.
template <bool kDescending>
bool Precedes(const Keyed& p, const Keyed& q) {
  const Keyed& low = kDescending ? q : p;
  const Keyed& high = kDescending ? p : q;
  if (low.value < high.value) return true;
  if (low.value > high.value) return false;
  const bool low_is_nan = std::isnan(low.value);
  const bool high_is_nan = std::isnan(high.value);
  if (low_is_nan != high_is_nan) return high_is_nan;
  return p.place < q.place;
}

template <bool kDescending>
void SortColumns(In x, Tensor& y, const Tensor& index) {
  const std::int64_t K = x.dim(1), I = x.dim(2), J = y.dim(1);
  std::vector<Keyed> keyed(K);
  for (std::int64_t column = 0; column < x.dim(0) * I; ++column) {
    const std::int64_t o = column / I, i = column % I;
    const float* const from = x.data<float>() + o * K * I + i;
    for (std::int64_t k = 0; k < K; ++k) keyed[k] = {from[k * I], k};
    if (J < K) {
      std::nth_element(keyed.begin(), keyed.begin() + J, keyed.end(),
                       Precedes<kDescending>);
    }
    std::sort(keyed.begin(), keyed.begin() + J, Precedes<kDescending>);
    for (std::int64_t j = 0; j < J; ++j) {
      y.data<float>()[(o * J + j) * I + i] = keyed[j].value;
      index.data<std::int64_t>()[(o * J + j) * I + i] = keyed[j].place;
    }
  }
}

absl::Status SortAxis(CpuDevice&, bool descending, In x, Tensor& y,
                      const Tensor& index) {
  if (descending) {
    SortColumns<true>(x, y, index);
  } else {
    SortColumns<false>(x, y, index);
  }
  return absl::OkStatus();
}

absl::Status CheckIndices(const Tensor& index, std::int64_t K) {
  const auto* const places = index.data<std::int64_t>();
  for (std::int64_t at = 0; at < index.numel(); ++at) {
    if (places[at] >= 0 && places[at] < K) continue;
    return absl::OutOfRangeError(absl::StrCat("index ", at, " is ", places[at],
                                              ", but the axis has ", K,
                                              " elements"));
  }
  return absl::OkStatus();
}

// Calls visit(o, j, places) for each o and j, with the indices of their row: I
// of them, or one for all.
template <typename Visit>
void ForEachRow(std::int64_t O, const Tensor& index, Visit visit) {
  const std::int64_t J = index.dim(1), width = index.dim(2);
  for (std::int64_t o = 0; o < O; ++o) {
    for (std::int64_t j = 0; j < J; ++j) {
      visit(o, j,
            index.data<std::int64_t>() +
                ((index.dim(0) == 1 ? 0 : o) * J + j) * width);
    }
  }
}

// The indices of a row differ.
template <typename Word>
void GatherWords(In x, const Tensor& index, const Tensor& y) {
  const std::int64_t K = x.dim(1), I = x.dim(2), J = y.dim(1);
  const auto* const from = static_cast<const Word*>(x.raw());
  auto* const to = static_cast<Word*>(y.raw());
  ForEachRow(x.dim(0), index,
             [&](std::int64_t o, std::int64_t j, const std::int64_t* places) {
               for (std::int64_t i = 0; i < I; ++i) {
                 to[(o * J + j) * I + i] = from[(o * K + places[i]) * I + i];
               }
             });
}

absl::Status GatherAxis(CpuDevice&, In x, In index, Tensor& y) {
  const std::int64_t K = x.dim(1), I = x.dim(2), J = y.dim(1);
  if (y.numel() == 0) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(CheckIndices(index, K));
  const std::size_t size = SizeOf(x.dtype());
  if (index.dim(2) == 1) {
    const std::size_t bytes = I * size;
    const char* const from = static_cast<const char*>(x.raw());
    char* const to = static_cast<char*>(y.raw());
    ForEachRow(x.dim(0), index,
               [&](std::int64_t o, std::int64_t j, const std::int64_t* place) {
                 std::memcpy(to + (o * J + j) * bytes,
                             from + (o * K + *place) * bytes, bytes);
               });
    return absl::OkStatus();
  }
  switch (size) {
    case 1:
      GatherWords<std::uint8_t>(x, index, y);
      break;
    case 2:
      GatherWords<std::uint16_t>(x, index, y);
      break;
    case 4:
      GatherWords<std::uint32_t>(x, index, y);
      break;
    default:
      GatherWords<std::uint64_t>(x, index, y);
  }
  return absl::OkStatus();
}

absl::Status ScatterAddAxis(CpuDevice& cpu, In x, const Tensor& index,
                            bool accumulate, Tensor& y) {
  const std::int64_t K = y.dim(1), I = y.dim(2), J = x.dim(1);
  const float* const from = x.data<float>();
  float* const to = y.data<float>();
  if (!accumulate) cpu.loops().fill(y.numel(), 0.0f, to);
  if (x.numel() == 0) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(CheckIndices(index, K));
  const bool whole_rows = index.dim(2) == 1;
  ForEachRow(y.dim(0), index,
             [&](std::int64_t o, std::int64_t j, const std::int64_t* places) {
               const float* const row = from + (o * J + j) * I;
               float* const rows = to + o * K * I;
               if (whole_rows) {
                 float* const sum = rows + *places * I;
                 cpu.loops().add(I, sum, row, sum);
                 return;
               }
               for (std::int64_t i = 0; i < I; ++i) {
                 rows[places[i] * I + i] += row[i];
               }
             });
  return absl::OkStatus();
}

// Goes row by row through x[K, I], with sums in f64.
absl::Status CumulativeSum(CpuDevice&, bool from_last, In x, Tensor& y) {
  const std::int64_t K = x.dim(1), I = x.dim(2);
  std::vector<double> sums(I);
  for (std::int64_t o = 0; o < x.dim(0); ++o) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t k = 0; k < K; ++k) {
      const std::int64_t row = (o * K + (from_last ? K - 1 - k : k)) * I;
      const float* const from = x.data<float>() + row;
      float* const to = y.data<float>() + row;
      for (std::int64_t i = 0; i < I; ++i) {
        sums[i] += from[i];
        to[i] = static_cast<float>(sums[i]);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, IndexingKernels& ops) {
  BindF32<SortAxis>(cpu, ops.SortAxis);
  ops.GatherAxis.Bind<GatherAxis>(&cpu);
  BindF32<ScatterAddAxis>(cpu, ops.ScatterAddAxis);
  BindF32<CumulativeSum>(cpu, ops.CumulativeSum);
}

}  // namespace troupe::nn::cpu
