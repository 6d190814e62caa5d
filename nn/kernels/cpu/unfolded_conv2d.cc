// Convolutions as linear layers of their unfolded windows. The columns are in
// the order of the weights in memory, so that weights are read once, without
// reordering, which matters if they are large and pixels are few.

#include <algorithm>

#include "base/check.h"
#include "nn/kernels/cpu/conv2d.h"
#include "nn/kernels/cpu/linear.h"

namespace troupe::nn::cpu {
namespace {

// Calls visit(output pixel, tap, input pixel) for every tap of every window;
// the input pixel is -1 in the padding.
template <typename Visit>
void ForEachTap(const ImageShape& d, Visit visit) {
  for (std::int64_t out = 0; out < d.n * d.p * d.q; ++out) {
    const std::int64_t n = out / (d.p * d.q);
    const std::int64_t h0 = out / d.q % d.p * d.stride_h - d.pad_h;
    const std::int64_t w0 = out % d.q * d.stride_w - d.pad_w;
    for (std::int64_t tap = 0; tap < d.r * d.s; ++tap) {
      const std::int64_t h = h0 + tap / d.s * d.dilation_h;
      const std::int64_t w = w0 + tap % d.s * d.dilation_w;
      const bool inside = h >= 0 && h < d.h && w >= 0 && w < d.w;
      visit(out, tap, inside ? (n * d.h + h) * d.w + w : -1);
    }
  }
}

absl::StatusOr<Tensor> Columns(CpuDevice& cpu, const ImageShape& d) {
  return Tensor::Create({d.n * d.p * d.q, d.c * d.r * d.s}, DType::kF32,
                        cpu.allocator());
}

}  // namespace

absl::StatusOr<Tensor> UnfoldWindows(CpuDevice& cpu, const ImageShape& d,
                                     In x) {
  TROUPE_ASSIGN_OR_RETURN(Tensor columns, Columns(cpu, d));
  const std::int64_t taps = d.r * d.s;
  TROUPE_ASSIGN_OR_RETURN(float* const window, cpu.Scratch(taps * d.c));
  const float* const from = x.data<float>();
  float* const to = columns.data<float>();
  ForEachTap(d, [&](std::int64_t out, std::int64_t tap, std::int64_t in) {
    float* const tap_C = window + tap * d.c;
    if (in < 0) {
      std::fill_n(tap_C, d.c, 0.0f);
    } else {
      std::copy_n(from + in * d.c, d.c, tap_C);
    }
    if (tap + 1 < taps) return;
    cpu.loops().transpose(taps, d.c, window, to + out * taps * d.c);
  });
  return columns;
}

// Sums in row order of the windows.
absl::Status FoldWindows(CpuDevice& cpu, const ImageShape& d,
                         const Tensor& columns, Tensor& dx) {
  const std::int64_t taps = d.r * d.s;
  TROUPE_ASSIGN_OR_RETURN(float* const window, cpu.Scratch(taps * d.c));
  const float* const from = columns.data<float>();
  float* const to = dx.data<float>();
  std::fill_n(to, dx.numel(), 0.0f);
  ForEachTap(d, [&](std::int64_t out, std::int64_t tap, std::int64_t in) {
    if (tap == 0) {
      cpu.loops().transpose(d.c, taps, from + out * taps * d.c, window);
    }
    if (in < 0) return;
    cpu.loops().add(d.c, to + in * d.c, window + tap * d.c, to + in * d.c);
  });
  return absl::OkStatus();
}

absl::Status UnfoldedConv2dForward(CpuDevice& cpu, const ImageShape& shape,
                                   In x, In w, In b, Tensor& y) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor columns, UnfoldWindows(cpu, shape, x));
  Tensor pixels = PixelRows(y);
  return LinearForward(cpu, columns, WeightRows(w), b, pixels);
}

absl::Status UnfoldedConv2dBackwardInput(CpuDevice& cpu,
                                         const ImageShape& shape, In dy, In w,
                                         Tensor& dx) {
  TROUPE_ASSIGN_OR_RETURN(Tensor columns, Columns(cpu, shape));
  TROUPE_RETURN_IF_ERROR(
      LinearBackwardInput(cpu, PixelRows(dy), WeightRows(w), columns));
  return FoldWindows(cpu, shape, columns, dx);
}

absl::Status UnfoldedConv2dBackwardWeight(CpuDevice& cpu,
                                          const ImageShape& shape, In x, In dy,
                                          bool accumulate, Tensor& dw,
                                          Tensor& db) {
  TROUPE_ASSIGN_OR_RETURN(const Tensor columns, UnfoldWindows(cpu, shape, x));
  Tensor rows = WeightRows(dw);
  return LinearBackwardWeight(cpu, columns, PixelRows(dy), accumulate, rows,
                              db);
}

}  // namespace troupe::nn::cpu
