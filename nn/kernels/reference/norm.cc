#include <cmath>

#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

// The extents of x[N, S, C] in groups of K channels.
struct Groups {
  Groups(const NormRule& rule, const Tensor& x)
      : N(x.dim(0)), S(x.dim(1)), C(x.dim(2)), G(rule.groups), K(C / G) {}

  double count() const { return static_cast<double>(S * K); }

  // Calls fn(i, c) for every element i, of channel c, of group g of sample n.
  template <typename Fn>
  void ForEach(std::int64_t n, std::int64_t g, Fn fn) const {
    for (std::int64_t s = 0; s < S; ++s) {
      for (std::int64_t c = g * K; c < (g + 1) * K; ++c) {
        fn((n * S + s) * C + c, c);
      }
    }
  }

  std::int64_t N, S, C, G, K;
};

template <typename T>
double LoadOr(const T* from, std::int64_t i, double otherwise) {
  return from != nullptr ? Load(from[i]) : otherwise;
}
template <typename T>
T* DataOrNull(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

template <typename T>
void AddTo(In a, In b, Tensor& sum) {
  const T *first = a.data<T>(), *second = b.data<T>();
  T* out = sum.data<T>();
  for (std::int64_t i = 0; i < sum.numel(); ++i) {
    out[i] = Store<T>(Load(first[i]) + Load(second[i]));
  }
}

struct NormForward {
  template <typename T>
  static absl::Status Run(const NormRule& rule, In x, In w, In b, Tensor& y,
                          Tensor& stats) {
    const Groups groups(rule, x);
    const T *in = x.data<T>(), *weight = DataOrNull<T>(w);
    const T* bias = DataOrNull<T>(b);
    T* out = y.data<T>();
    double* stat = stats.data<double>();
    for (std::int64_t n = 0; n < groups.N; ++n) {
      for (std::int64_t g = 0; g < groups.G; ++g, stat += 2) {
        double sum = 0, squares = 0;
        groups.ForEach(n, g, [&](auto i, auto) { sum += Load(in[i]); });
        const double mean = rule.centered ? sum / groups.count() : 0;
        groups.ForEach(n, g, [&](auto i, auto) {
          squares += (Load(in[i]) - mean) * (Load(in[i]) - mean);
        });
        const double rstd = 1 / std::sqrt(squares / groups.count() + rule.eps);
        groups.ForEach(n, g, [&](auto i, auto c) {
          out[i] = Store<T>((Load(in[i]) - mean) * rstd * LoadOr(weight, c, 1) +
                            LoadOr(bias, c, 0));
        });
        stat[0] = mean, stat[1] = rstd;
      }
    }
    return absl::OkStatus();
  }
};

struct AddNormForward {
  template <typename T>
  static absl::Status Run(const NormRule& rule, In a, In b, In w, In bias,
                          Tensor& sum, Tensor& y, Tensor& stats) {
    AddTo<T>(a, b, sum);
    return NormForward::Run<T>(rule, sum, w, bias, y, stats);
  }
};

struct NormBackwardInput {
  template <typename T>
  static absl::Status Run(const NormRule& rule, In x, In stats, In w, In dy,
                          Tensor& dx) {
    const Groups groups(rule, x);
    const T *in = x.data<T>(), *weight = DataOrNull<T>(w), *d = dy.data<T>();
    T* out = dx.data<T>();
    const double* stat = stats.data<double>();
    for (std::int64_t n = 0; n < groups.N; ++n) {
      for (std::int64_t g = 0; g < groups.G; ++g, stat += 2) {
        const double mean = stat[0], rstd = stat[1];
        double sum = 0, projected = 0;
        groups.ForEach(n, g, [&](auto i, auto c) {
          const double gradient = Load(d[i]) * LoadOr(weight, c, 1);
          sum += gradient;
          projected += gradient * (Load(in[i]) - mean) * rstd;
        });
        const double mean_g = rule.centered ? sum / groups.count() : 0;
        groups.ForEach(n, g, [&](auto i, auto c) {
          const double xhat = (Load(in[i]) - mean) * rstd;
          out[i] = Store<T>(rstd * (Load(d[i]) * LoadOr(weight, c, 1) - mean_g -
                                    xhat * projected / groups.count()));
        });
      }
    }
    return absl::OkStatus();
  }
};

struct AddNormBackwardInput {
  template <typename T>
  static absl::Status Run(const NormRule& rule, In x, In stats, In w, In dy,
                          In base, Tensor& dx) {
    TROUPE_RETURN_IF_ERROR(
        NormBackwardInput::Run<T>(rule, x, stats, w, dy, dx));
    AddTo<T>(base, dx, dx);
    return absl::OkStatus();
  }
};

struct NormBackwardWeight {
  template <typename T>
  static absl::Status Run(const NormRule& rule, In x, In stats, In dy,
                          bool accumulate, Tensor& dw, Tensor& db) {
    const Groups groups(rule, x);
    const std::int64_t rows = groups.N * groups.S, C = groups.C;
    const T *in = x.data<T>(), *d = dy.data<T>();
    T *to_w = DataOrNull<T>(dw), *to_b = DataOrNull<T>(db);
    for (std::int64_t c = 0; c < C; ++c) {
      double scaled = accumulate ? LoadOr(to_w, c, 0) : 0;
      double sum = accumulate ? LoadOr(to_b, c, 0) : 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t group = r / groups.S * groups.G + c / groups.K;
        const double* stat = stats.data<double>() + group * 2;
        const double gradient = Load(d[r * C + c]);
        scaled += gradient * (Load(in[r * C + c]) - stat[0]) * stat[1];
        sum += gradient;
      }
      if (to_w) to_w[c] = Store<T>(scaled);
      if (to_b) to_b[c] = Store<T>(sum);
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(NormKernels& ops) {
  BindFloating<NormForward>(ops.NormForward);
  BindFloating<AddNormForward>(ops.AddNormForward);
  BindFloating<NormBackwardInput>(ops.NormBackwardInput);
  BindFloating<AddNormBackwardInput>(ops.AddNormBackwardInput);
  BindFloating<NormBackwardWeight>(ops.NormBackwardWeight);
}

}  // namespace troupe::nn::reference
