#include "nn/kernels/batch_norm_host.h"
#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

template <typename T>
double LoadOr(const Tensor& t, std::int64_t i, double otherwise) {
  return t.defined() ? Load(t.data<T>()[i]) : otherwise;
}

// Values of one channel: xhat = (x - mean) rstd, z = xhat w + b.
template <typename T>
struct Channel {
  Channel(std::int64_t c, const Tensor& stats, const Tensor& w, const Tensor& b)
      : mean(stats.data<double>()[c]),
        rstd(stats.data<double>()[stats.dim(1) + c]),
        weight(LoadOr<T>(w, c, 1)),
        bias(LoadOr<T>(b, c, 0)) {}

  double Hat(double x) const { return (x - mean) * rstd; }
  double Affine(double x) const { return Hat(x) * weight + bias; }
  // Returns the gradient before the ReLU, if there is one.
  double Masked(double x, double dy, bool relu) const {
    return relu && Affine(x) <= 0 ? 0 : dy;
  }

  double mean, rstd, weight, bias;
};

struct BatchNormSums {
  template <typename T>
  static absl::Status Run(In x, Tensor& sums) {
    const std::int64_t R = x.dim(0), C = x.dim(1);
    double* sum = sums.data<double>();
    for (std::int64_t c = 0; c < C; ++c) {
      sum[c] = sum[C + c] = 0;
      for (std::int64_t r = 0; r < R; ++r) {
        const double value = Load(x.data<T>()[r * C + c]);
        sum[c] += value;
        sum[C + c] += value * value;
      }
    }
    sum[2 * C] = static_cast<double>(R);
    return absl::OkStatus();
  }
};

struct BatchNormSquares {
  template <typename T>
  static absl::Status Run(In x, FixedIn sums, Tensor& squares) {
    const std::int64_t R = x.dim(0), C = x.dim(1);
    const double* all = sums.tensor.data<double>();
    double* sum = squares.data<double>();
    for (std::int64_t c = 0; c < C; ++c) {
      const double mean = all[2 * C] > 0 ? all[c] / all[2 * C] : 0;
      sum[c] = sum[C + c] = 0;
      for (std::int64_t r = 0; r < R; ++r) {
        const double value = Load(x.data<T>()[r * C + c]);
        sum[c] += value;
        sum[C + c] += (value - mean) * (value - mean);
      }
    }
    sum[2 * C] = static_cast<double>(R);
    return absl::OkStatus();
  }
};

struct BatchNormForward {
  template <typename T>
  static absl::Status Run(In x, In stats, In w, In b, In residual, bool relu,
                          Tensor& y) {
    const std::int64_t R = x.dim(0), C = x.dim(1);
    for (std::int64_t c = 0; c < C; ++c) {
      const Channel<T> channel(c, stats, w, b);
      for (std::int64_t r = 0; r < R; ++r) {
        const std::int64_t i = r * C + c;
        const double z =
            channel.Affine(Load(x.data<T>()[i])) + LoadOr<T>(residual, i, 0);
        y.data<T>()[i] = Store<T>(relu && z <= 0 ? 0 : z);  // NaN stays
      }
    }
    return absl::OkStatus();
  }
};

struct BatchNormBackwardSums {
  template <typename T>
  static absl::Status Run(In x, In stats, In w, In b, In dy, bool relu,
                          Tensor& sums) {
    const std::int64_t R = x.dim(0), C = x.dim(1);
    double* sum = sums.data<double>();
    for (std::int64_t c = 0; c < C; ++c) {
      const Channel<T> channel(c, stats, w, b);
      sum[c] = sum[C + c] = 0;
      for (std::int64_t r = 0; r < R; ++r) {
        const double value = Load(x.data<T>()[r * C + c]);
        const double dz =
            channel.Masked(value, Load(dy.data<T>()[r * C + c]), relu);
        sum[c] += dz;
        sum[C + c] += dz * channel.Hat(value);
      }
    }
    sum[2 * C] = static_cast<double>(R);
    return absl::OkStatus();
  }
};

struct BatchNormBackwardInput {
  template <typename T>
  static absl::Status Run(In x, In stats, In w, In b, In dy, bool relu, In sums,
                          Tensor& dx) {
    const std::int64_t R = x.dim(0), C = x.dim(1);
    for (std::int64_t c = 0; c < C; ++c) {
      const Channel<T> channel(c, stats, w, b);
      const double* sum = sums.defined() ? sums.data<double>() : nullptr;
      const double mean_dz = sum ? sum[c] / sum[2 * C] : 0;
      const double mean_projected = sum ? sum[C + c] / sum[2 * C] : 0;
      for (std::int64_t r = 0; r < R; ++r) {
        const double value = Load(x.data<T>()[r * C + c]);
        const double dz =
            channel.Masked(value, Load(dy.data<T>()[r * C + c]), relu);
        const double centered =
            sum ? dz - mean_dz - channel.Hat(value) * mean_projected : dz;
        dx.data<T>()[r * C + c] =
            Store<T>(channel.weight * channel.rstd * centered);
      }
    }
    return absl::OkStatus();
  }
};

struct BatchNormBackwardWeight {
  template <typename T>
  static absl::Status Run(In sums, bool accumulate, Tensor& dw, Tensor& db) {
    const std::int64_t C = (sums.numel() - 1) / 2;
    const double* sum = sums.data<double>();
    for (std::int64_t c = 0; c < C; ++c) {
      const double dw_before = accumulate ? LoadOr<T>(dw, c, 0) : 0;
      const double db_before = accumulate ? LoadOr<T>(db, c, 0) : 0;
      dw.data<T>()[c] = Store<T>(dw_before + sum[C + c]);
      if (db.defined()) db.data<T>()[c] = Store<T>(db_before + sum[c]);
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(BatchNormKernels& ops) {
  BindFloating<BatchNormSums>(ops.BatchNormSums);
  BindFloating<BatchNormSquares>(ops.BatchNormSquares);
  BindFloating<BatchNormForward>(ops.BatchNormForward);
  BindFloating<BatchNormBackwardSums>(ops.BatchNormBackwardSums);
  BindFloating<BatchNormBackwardInput>(ops.BatchNormBackwardInput);
  BindFloating<BatchNormBackwardWeight>(ops.BatchNormBackwardWeight);
  BindBatchNormStatsOnHost(ops);
}

}  // namespace troupe::nn::reference
