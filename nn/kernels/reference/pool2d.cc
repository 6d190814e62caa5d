#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

// Calls fn(n, i, j, c) for every element of `images` [N, I, J, C], in memory
// order.
template <typename Fn>
void ForEachPixel(const Tensor& images, Fn fn) {
  for (std::int64_t n = 0; n < images.dim(0); ++n) {
    for (std::int64_t i = 0; i < images.dim(1); ++i) {
      for (std::int64_t j = 0; j < images.dim(2); ++j) {
        for (std::int64_t c = 0; c < images.dim(3); ++c) fn(n, i, j, c);
      }
    }
  }
}

// Calls fn(h, w) for every input pixel in the window of output (p, q), in row
// order.
template <typename Fn>
void ForEachTap(const Window2d& win, const Tensor& x, std::int64_t p,
                std::int64_t q, Fn fn) {
  for (std::int64_t r = 0; r < win.kernel_h; ++r) {
    const auto h = InputAt(p, win.stride_h, win.pad_h, r, x.dim(1));
    for (std::int64_t s = 0; h >= 0 && s < win.kernel_w; ++s) {
      const auto w = InputAt(q, win.stride_w, win.pad_w, s, x.dim(2));
      if (w >= 0) fn(h, w);
    }
  }
}

// Calls fn(p, q) for every output whose window has input pixel (h, w), in row
// order.
template <typename Fn>
void ForEachOutput(const Window2d& win, const Tensor& y, std::int64_t h,
                   std::int64_t w, Fn fn) {
  for (std::int64_t r = win.kernel_h - 1; r >= 0; --r) {
    const auto p = OutputAt(h, win.stride_h, win.pad_h, r, y.dim(1));
    for (std::int64_t s = win.kernel_w - 1; p >= 0 && s >= 0; --s) {
      const auto q = OutputAt(w, win.stride_w, win.pad_w, s, y.dim(2));
      if (q >= 0) fn(p, q);
    }
  }
}

std::int64_t At(const Tensor& images, std::int64_t n, std::int64_t i,
                std::int64_t j, std::int64_t c) {
  return ((n * images.dim(1) + i) * images.dim(2) + j) * images.dim(3) + c;
}

struct MaxPool2dForward {
  template <typename T>
  static absl::Status Run(const Window2d& window, In x, Tensor& y,
                          Tensor& argmax) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    std::int32_t* winner = argmax.data<std::int32_t>();
    ForEachPixel(y, [&](auto n, auto p, auto q, auto c) {
      double best = -std::numeric_limits<double>::infinity();
      std::int64_t best_at = -1;
      ForEachTap(window, x, p, q, [&](auto h, auto w) {
        const double value = Load(in[At(x, n, h, w, c)]);
        if (best_at < 0 || value > best || std::isnan(value)) {
          best = value;
          best_at = h * x.dim(2) + w;
        }
      });
      *out++ = Store<T>(best);
      *winner++ = static_cast<std::int32_t>(best_at);
    });
    return absl::OkStatus();
  }
};

struct MaxPool2dBackward {
  template <typename T>
  static absl::Status Run(const Window2d& window, In dy, In argmax,
                          Tensor& dx) {
    const T* in = dy.data<T>();
    const std::int32_t* winner = argmax.data<std::int32_t>();
    T* out = dx.data<T>();
    ForEachPixel(dx, [&](auto n, auto h, auto w, auto c) {
      double sum = 0;
      ForEachOutput(window, dy, h, w, [&](auto p, auto q) {
        const std::int64_t at = At(dy, n, p, q, c);
        if (winner[at] == h * dx.dim(2) + w) sum += Load(in[at]);
      });
      *out++ = Store<T>(sum);
    });
    return absl::OkStatus();
  }
};

// Rows of the image that one output row averages, [begin, end), and the number
// that the mean counts. The same for columns.
struct Bin {
  std::int64_t begin, end, count;
};

Bin BinOf(std::int64_t out, std::int64_t kernel, std::int64_t stride,
          std::int64_t pad, AvgDivisor divisor, std::int64_t extent) {
  const std::int64_t first = out * stride - pad;
  const std::int64_t begin = std::max<std::int64_t>(first, 0);
  const std::int64_t end = std::min(first + kernel, extent);
  return {begin, end,
          divisor == AvgDivisor::kImage
              ? end - begin
              : std::min(first + kernel, extent + pad) - first};
}

Bin AdaptiveBin(std::int64_t out, std::int64_t outputs, std::int64_t extent) {
  const std::int64_t begin = out * extent / outputs;
  const std::int64_t end = ((out + 1) * extent + outputs - 1) / outputs;
  return {begin, end, end - begin};
}

// Maps the means y to rows and columns of the images x.
class WindowBins {
 public:
  WindowBins(const Window2d& window, AvgDivisor divisor, const Tensor& x)
      : win_(window), divisor_(divisor), H_(x.dim(1)), W_(x.dim(2)) {}
  Bin Row(std::int64_t p) const {
    return BinOf(p, win_.kernel_h, win_.stride_h, win_.pad_h, divisor_, H_);
  }
  Bin Column(std::int64_t q) const {
    return BinOf(q, win_.kernel_w, win_.stride_w, win_.pad_w, divisor_, W_);
  }

 private:
  const Window2d win_;
  const AvgDivisor divisor_;
  const std::int64_t H_, W_;
};

class AdaptiveBins {
 public:
  AdaptiveBins(const Tensor& x, const Tensor& y) : x_(x), y_(y) {}
  Bin Row(std::int64_t p) const { return AdaptiveBin(p, y_.dim(1), x_.dim(1)); }
  Bin Column(std::int64_t q) const {
    return AdaptiveBin(q, y_.dim(2), x_.dim(2));
  }

 private:
  const Tensor &x_, &y_;
};

template <typename T, typename Bins>
void Average(const Bins& bins, const Tensor& x, Tensor& y) {
  const T* in = x.data<T>();
  T* out = y.data<T>();
  ForEachPixel(y, [&](auto n, auto p, auto q, auto c) {
    const Bin rows = bins.Row(p), columns = bins.Column(q);
    double sum = 0;
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      for (std::int64_t w = columns.begin; w < columns.end; ++w) {
        sum += Load(in[At(x, n, h, w, c)]);
      }
    }
    *out++ = Store<T>(sum / static_cast<double>(rows.count * columns.count));
  });
}

template <typename T, typename Bins>
void AverageBackward(const Bins& bins, const Tensor& dy, Tensor& dx) {
  const T* in = dy.data<T>();
  std::vector<double> sums(static_cast<std::size_t>(dx.numel()), 0.0);
  ForEachPixel(dy, [&](auto n, auto p, auto q, auto c) {
    const Bin rows = bins.Row(p), columns = bins.Column(q);
    const double each =
        Load(*in++) / static_cast<double>(rows.count * columns.count);
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      for (std::int64_t w = columns.begin; w < columns.end; ++w) {
        sums[At(dx, n, h, w, c)] += each;
      }
    }
  });
  T* out = dx.data<T>();
  for (double sum : sums) *out++ = Store<T>(sum);
}

struct AvgPool2dForward {
  template <typename T>
  static absl::Status Run(const Window2d& window, AvgDivisor divisor, In x,
                          Tensor& y) {
    Average<T>(WindowBins(window, divisor, x), x, y);
    return absl::OkStatus();
  }
};

struct AvgPool2dBackward {
  template <typename T>
  static absl::Status Run(const Window2d& window, AvgDivisor divisor, In dy,
                          Tensor& dx) {
    AverageBackward<T>(WindowBins(window, divisor, dx), dy, dx);
    return absl::OkStatus();
  }
};

struct AdaptiveAvgPool2dForward {
  template <typename T>
  static absl::Status Run(In x, Tensor& y) {
    Average<T>(AdaptiveBins(x, y), x, y);
    return absl::OkStatus();
  }
};

struct AdaptiveAvgPool2dBackward {
  template <typename T>
  static absl::Status Run(In dy, Tensor& dx) {
    AverageBackward<T>(AdaptiveBins(dx, dy), dy, dx);
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(Pool2dKernels& ops) {
  BindFloating<MaxPool2dForward>(ops.MaxPool2dForward);
  BindFloating<MaxPool2dBackward>(ops.MaxPool2dBackward);
  BindFloating<AvgPool2dForward>(ops.AvgPool2dForward);
  BindFloating<AvgPool2dBackward>(ops.AvgPool2dBackward);
  BindFloating<AdaptiveAvgPool2dForward>(ops.AdaptiveAvgPool2dForward);
  BindFloating<AdaptiveAvgPool2dBackward>(ops.AdaptiveAvgPool2dBackward);
}

}  // namespace troupe::nn::reference
