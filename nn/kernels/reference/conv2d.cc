#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

// The extents of one convolution and the memory layout of its elements.
struct ConvShape {
  ConvShape(const Window2d& window, const Tensor& x_NHWC, const Tensor& w_OCRS,
            const Tensor& y_NPQO)
      : win(window),
        N(x_NHWC.dim(0)),
        H(x_NHWC.dim(1)),
        W(x_NHWC.dim(2)),
        C(x_NHWC.dim(3)),
        P(y_NPQO.dim(1)),
        Q(y_NPQO.dim(2)),
        O(y_NPQO.dim(3)),
        R(window.kernel_h),
        S(window.kernel_w),
        group_C(w_OCRS.dim(1)),
        group_O(O / GroupsOf(x_NHWC, w_OCRS)) {}

  std::int64_t X(std::int64_t n, std::int64_t h, std::int64_t w,
                 std::int64_t c) const {
    return ((n * H + h) * W + w) * C + c;
  }
  std::int64_t Y(std::int64_t n, std::int64_t p, std::int64_t q,
                 std::int64_t o) const {
    return ((n * P + p) * Q + q) * O + o;
  }
  // Index of a weight; `c` counts from the first channel of o's group.
  std::int64_t Weight(std::int64_t o, std::int64_t c, std::int64_t r,
                      std::int64_t s) const {
    return ((o * group_C + c) * R + r) * S + s;
  }
  // Returns the input row of row `r` of the window of output row p, or -1;
  // columns and output rows likewise.
  std::int64_t RowOf(std::int64_t p, std::int64_t r) const {
    return InputAt(p, win.stride_h, win.pad_h, r * win.dilation_h, H);
  }
  std::int64_t ColumnOf(std::int64_t q, std::int64_t s) const {
    return InputAt(q, win.stride_w, win.pad_w, s * win.dilation_w, W);
  }
  std::int64_t OutputRowOf(std::int64_t h, std::int64_t r) const {
    return OutputAt(h, win.stride_h, win.pad_h, r * win.dilation_h, P);
  }
  std::int64_t OutputColumnOf(std::int64_t v, std::int64_t s) const {
    return OutputAt(v, win.stride_w, win.pad_w, s * win.dilation_w, Q);
  }
  // Returns the first channel of the group of output channel `o`.
  std::int64_t FirstC(std::int64_t o) const { return o / group_O * group_C; }

  const Window2d win;
  const std::int64_t N, H, W, C, P, Q, O, R, S;
  const std::int64_t group_C, group_O;  // channels of a group
};

// Returns y[n, p, q, o] without the bias.
template <typename T>
double ForwardAt(const ConvShape& at, const T* x, const T* w, std::int64_t n,
                 std::int64_t p, std::int64_t q, std::int64_t o) {
  double sum = 0;
  const std::int64_t first = at.FirstC(o);
  for (std::int64_t r = 0; r < at.R; ++r) {
    const auto h = at.RowOf(p, r);
    for (std::int64_t s = 0; h >= 0 && s < at.S; ++s) {
      const auto v = at.ColumnOf(q, s);
      for (std::int64_t c = 0; v >= 0 && c < at.group_C; ++c) {
        sum +=
            Load(x[at.X(n, h, v, first + c)]) * Load(w[at.Weight(o, c, r, s)]);
      }
    }
  }
  return sum;
}

// Returns dx[n, h, v, c], the sum over every window that has the pixel.
template <typename T>
double BackwardInputAt(const ConvShape& at, const T* dy, const T* w,
                       std::int64_t n, std::int64_t h, std::int64_t v,
                       std::int64_t c) {
  double sum = 0;
  const std::int64_t begin = c / at.group_C * at.group_O;
  const std::int64_t in_group = c % at.group_C;
  for (std::int64_t r = at.R - 1; r >= 0; --r) {
    const auto p = at.OutputRowOf(h, r);
    for (std::int64_t s = at.S - 1; p >= 0 && s >= 0; --s) {
      const auto q = at.OutputColumnOf(v, s);
      for (std::int64_t o = begin; q >= 0 && o < begin + at.group_O; ++o) {
        sum +=
            Load(dy[at.Y(n, p, q, o)]) * Load(w[at.Weight(o, in_group, r, s)]);
      }
    }
  }
  return sum;
}

// Returns dw[o, c, r, s], samples and pixels in ascending order; `c` is within
// the group.
template <typename T>
double BackwardWeightAt(const ConvShape& at, const T* x, const T* dy,
                        std::int64_t o, std::int64_t c, std::int64_t r,
                        std::int64_t s) {
  double sum = 0;
  const std::int64_t channel = at.FirstC(o) + c;
  for (std::int64_t n = 0; n < at.N; ++n) {
    for (std::int64_t p = 0; p < at.P; ++p) {
      const auto h = at.RowOf(p, r);
      for (std::int64_t q = 0; h >= 0 && q < at.Q; ++q) {
        const auto v = at.ColumnOf(q, s);
        if (v < 0) continue;
        sum += Load(dy[at.Y(n, p, q, o)]) * Load(x[at.X(n, h, v, channel)]);
      }
    }
  }
  return sum;
}

// Computes db[o]: the sum of dy over samples and pixels.
template <typename T>
void BackwardBias(const ConvShape& at, const T* dy, bool accumulate, T* db) {
  const std::int64_t pixels = at.N * at.P * at.Q;
  for (std::int64_t o = 0; o < at.O; ++o) {
    double sum = accumulate ? Load(db[o]) : 0;
    for (std::int64_t i = 0; i < pixels; ++i) sum += Load(dy[i * at.O + o]);
    db[o] = Store<T>(sum);
  }
}

// Calls fn(i, j, k, l) for every index of an array [I, J, K, L], in order.
template <typename Fn>
void ForEach4(std::int64_t I, std::int64_t J, std::int64_t K, std::int64_t L,
              Fn fn) {
  for (std::int64_t i = 0; i < I; ++i) {
    for (std::int64_t j = 0; j < J; ++j) {
      for (std::int64_t k = 0; k < K; ++k) {
        for (std::int64_t l = 0; l < L; ++l) fn(i, j, k, l);
      }
    }
  }
}

struct Conv2dForward {
  template <typename T>
  static absl::Status Run(const Window2d& window, In x_NHWC, In w_OCRS, In b_O,
                          Tensor& y_NPQO) {
    const ConvShape at(window, x_NHWC, w_OCRS, y_NPQO);
    const T* x = x_NHWC.data<T>();
    const T* w = w_OCRS.data<T>();
    const T* b = b_O.defined() ? b_O.data<T>() : nullptr;
    T* y = y_NPQO.data<T>();
    ForEach4(at.N, at.P, at.Q, at.O, [&](auto n, auto p, auto q, auto o) {
      const double bias = b ? Load(b[o]) : 0;
      y[at.Y(n, p, q, o)] = Store<T>(bias + ForwardAt(at, x, w, n, p, q, o));
    });
    return absl::OkStatus();
  }
};

struct Conv2dBackwardInput {
  template <typename T>
  static absl::Status Run(const Window2d& window, In dy_NPQO, In w_OCRS,
                          Tensor& dx_NHWC) {
    const ConvShape at(window, dx_NHWC, w_OCRS, dy_NPQO);
    const T* dy = dy_NPQO.data<T>();
    const T* w = w_OCRS.data<T>();
    T* dx = dx_NHWC.data<T>();
    ForEach4(at.N, at.H, at.W, at.C, [&](auto n, auto h, auto v, auto c) {
      dx[at.X(n, h, v, c)] = Store<T>(BackwardInputAt(at, dy, w, n, h, v, c));
    });
    return absl::OkStatus();
  }
};

struct Conv2dBackwardWeight {
  template <typename T>
  static absl::Status Run(const Window2d& window, In x_NHWC, In dy_NPQO,
                          bool accumulate, Tensor& dw_OCRS, Tensor& db_O) {
    const ConvShape at(window, x_NHWC, dw_OCRS, dy_NPQO);
    const T* x = x_NHWC.data<T>();
    const T* dy = dy_NPQO.data<T>();
    T* dw = dw_OCRS.data<T>();
    ForEach4(at.O, at.group_C, at.R, at.S, [&](auto o, auto c, auto r, auto s) {
      T& element_dw = dw[at.Weight(o, c, r, s)];
      const double before = accumulate ? Load(element_dw) : 0;
      element_dw = Store<T>(before + BackwardWeightAt(at, x, dy, o, c, r, s));
    });
    if (db_O.defined()) BackwardBias(at, dy, accumulate, db_O.data<T>());
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(Conv2dKernels& ops) {
  BindFloating<Conv2dForward>(ops.Conv2dForward);
  BindFloating<Conv2dBackwardInput>(ops.Conv2dBackwardInput);
  BindFloating<Conv2dBackwardWeight>(ops.Conv2dBackwardWeight);
}

}  // namespace troupe::nn::reference
