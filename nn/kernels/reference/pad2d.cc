#include <vector>

#include "nn/kernels/pad_source.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

// Calls fn(i, j) for each element i of the padded images [N, P, Q, C], in
// order: j is the element of the image [N, H, W, C] that it copies, or -1 for a
// zero.
template <typename Fn>
void ForEachCopy(const Padding2d& pad, const Tensor& image,
                 const Tensor& padded, Fn fn) {
  const std::int64_t H = image.dim(1), W = image.dim(2), C = image.dim(3);
  std::int64_t i = 0;
  for (std::int64_t n = 0; n < padded.dim(0); ++n) {
    for (std::int64_t p = 0; p < padded.dim(1); ++p) {
      const std::int64_t h = PadSource(pad.mode, p, pad.top, H);
      for (std::int64_t q = 0; q < padded.dim(2); ++q) {
        const std::int64_t w = PadSource(pad.mode, q, pad.left, W);
        const bool zero = h < 0 || w < 0;
        for (std::int64_t c = 0; c < C; ++c) {
          fn(i++, zero ? -1 : ((n * H + h) * W + w) * C + c);
        }
      }
    }
  }
}

struct Pad2dForward {
  template <typename T>
  static absl::Status Run(const Padding2d& padding, In x, Tensor& y) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    ForEachCopy(padding, x, y, [&](std::int64_t i, std::int64_t j) {
      out[i] = j < 0 ? Store<T>(0) : in[j];
    });
    return absl::OkStatus();
  }
};

struct Pad2dBackward {
  template <typename T>
  static absl::Status Run(const Padding2d& padding, In dy, Tensor& dx) {
    const T* in = dy.data<T>();
    std::vector<double> sums(static_cast<std::size_t>(dx.numel()), 0.0);
    ForEachCopy(padding, dx, dy, [&](std::int64_t i, std::int64_t j) {
      if (j >= 0) sums[j] += Load(in[i]);
    });
    T* out = dx.data<T>();
    for (double sum : sums) *out++ = Store<T>(sum);
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(Pad2dKernels& ops) {
  BindFloating<Pad2dForward>(ops.Pad2dForward);
  BindFloating<Pad2dBackward>(ops.Pad2dBackward);
}

}  // namespace troupe::nn::reference
