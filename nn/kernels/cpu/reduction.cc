#include "nn/kernels/reduction.h"

#include <algorithm>

#include "nn/kernels/cpu/widening.h"

namespace troupe::nn::cpu {
namespace {

// y[outer, inner] = the sums over R of x[outer, R, inner].
void SumMiddle(const Loops& loops, std::int64_t outer, std::int64_t R,
               std::int64_t inner, const float* x, float* y) {
  if (R == 0) {
    std::fill_n(y, outer * inner, 0.0f);
    return;
  }
  for (std::int64_t i = 0; i < outer; ++i, x += R * inner, y += inner) {
    if (inner == 1) {
      *y = static_cast<float>(loops.sum_of_products(R, x, /*b=*/nullptr));
    } else {
      loops.column_sums(R, inner, x, /*accumulate=*/false, y);
    }
  }
}

// Neighbouring axes [begin, end) that are summed as one; begin == end: none.
struct AxisRun {
  int begin, end;
};

bool IsSummed(const Shape& x, const Shape& y, int axis) {
  return x[axis] != 1 && y[axis] == 1;
}

// Returns the last run of summed axes before axis `before`. Axes of extent 1
// may be in any run.
AxisRun LastRun(const Shape& x, const Shape& y, int before) {
  int end = before;
  while (end > 0 && !IsSummed(x, y, end - 1)) --end;
  int begin = end;
  while (begin > 0 && (x[begin - 1] == 1 || IsSummed(x, y, begin - 1))) --begin;
  return {begin, end};
}

std::int64_t Extent(const Shape& shape, int begin, int end) {
  std::int64_t n = 1;
  for (int axis = begin; axis < end; ++axis) n *= shape[axis];
  return n;
}

// Sums over one run of axes after another, from the last.
absl::Status SumAxes(CpuDevice& cpu, In x, double divisor, Tensor& y) {
  Tensor from = x.Detached();
  AxisRun run = LastRun(x.shape(), y.shape(), x.shape().rank());
  if (run.begin == run.end) {
    std::copy_n(x.data<float>(), x.numel(), y.data<float>());
  }
  while (run.begin != run.end) {
    const AxisRun next = LastRun(x.shape(), y.shape(), run.begin);
    Shape shape = from.shape();
    for (int axis = run.begin; axis < run.end; ++axis) shape.set(axis, 1);
    Tensor to = y;
    if (next.begin != next.end) {
      TROUPE_ASSIGN_OR_RETURN(
          to, Tensor::Create(shape, DType::kF32, cpu.allocator()));
    }
    SumMiddle(cpu.loops(), Extent(shape, 0, run.begin),
              Extent(x.shape(), run.begin, run.end),
              Extent(shape, run.end, shape.rank()), from.data<float>(),
              to.data<float>());
    from = to;
    run = next;
  }
  if (divisor == 1) return absl::OkStatus();
  const float by = static_cast<float>(divisor);
  float* mean = y.data<float>();
  for (std::int64_t i = 0; i < y.numel(); ++i) mean[i] /= by;
  return absl::OkStatus();
}

// Returns whether `x` takes the place of `best`. No comparison with a NaN
// holds, so that a NaN takes it from a number, and keeps it.
template <bool kLargest>
bool Beats(float x, float best) {
  return kLargest ? !(x <= best) && best == best : !(x >= best) && best == best;
}

// Goes row by row through x[K, I]: all memory is read in its order.
template <bool kLargest>
void ExtremeOfRows(std::int64_t K, std::int64_t I, const float* x, float* y,
                   std::int64_t* index) {
  std::copy_n(x, I, y);
  std::fill_n(index, I, std::int64_t{0});
  for (std::int64_t k = 1; k < K; ++k) {
    const float* const row = x + k * I;
    for (std::int64_t i = 0; i < I; ++i) {
      if (!Beats<kLargest>(row[i], y[i])) continue;
      y[i] = row[i];
      index[i] = k;
    }
  }
}

absl::Status ExtremeOfAxis(CpuDevice&, bool largest, In x, Tensor& y,
                           const Tensor& index) {
  const std::int64_t K = x.dim(1), I = x.dim(2);
  for (std::int64_t o = 0; o < x.dim(0); ++o) {
    const float* const from = x.data<float>() + o * K * I;
    float* const to = y.data<float>() + o * I;
    std::int64_t* const at = index.data<std::int64_t>() + o * I;
    if (largest) {
      ExtremeOfRows<true>(K, I, from, to, at);
    } else {
      ExtremeOfRows<false>(K, I, from, to, at);
    }
  }
  return absl::OkStatus();
}

absl::Status PlaceAlongAxis(CpuDevice&, In x, const Tensor& index, Tensor& y) {
  const std::int64_t K = y.dim(1), I = y.dim(2);
  std::fill_n(y.data<float>(), y.numel(), 0.0f);
  for (std::int64_t at = 0; at < x.numel(); ++at) {
    const std::int64_t k = index.data<std::int64_t>()[at];
    if (k < 0 || k >= K) continue;
    y.data<float>()[(at / I * K + k) * I + at % I] = x.data<float>()[at];
  }
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, ReductionKernels& ops) {
  BindF32<SumAxes>(cpu, ops.SumAxes);
  BindF32<ExtremeOfAxis>(cpu, ops.ExtremeOfAxis);
  BindF32<PlaceAlongAxis>(cpu, ops.PlaceAlongAxis);
}

}  // namespace troupe::nn::cpu
