#include <algorithm>
#include <cmath>

#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct ReluForward {
  template <typename T>
  static absl::Status Run(In x, Tensor& y) {
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const double value = Load(in[i]);
      out[i] = Store<T>(value <= 0 ? 0 : value);  // NaN stays
    }
    return absl::OkStatus();
  }
};

struct ReluBackward {
  template <typename T>
  static absl::Status Run(In y, In dy, Tensor& dx) {
    const T* activation = y.data<T>();
    const T* in = dy.data<T>();
    T* out = dx.data<T>();
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      out[i] = Store<T>(Load(activation[i]) <= 0 ? 0 : Load(in[i]));
    }
    return absl::OkStatus();
  }
};

struct CountNonFinite {
  template <typename T>
  static absl::Status Run(In x, Tensor& count) {
    const T* from = x.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      if (!std::isfinite(Load(from[i]))) count.data<double>()[0] += 1;
    }
    return absl::OkStatus();
  }
};

struct Scale {
  template <typename T>
  static absl::Status Run(In x, In factor, Tensor& y) {
    const double by = factor.data<double>()[0];
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      to[i] = Store<T>(Load(from[i]) * by);
    }
    return absl::OkStatus();
  }
};

struct Add {
  template <typename T>
  static absl::Status Run(In a, In b, Tensor& y) {
    const T* left = a.data<T>();
    const T* right = b.data<T>();
    T* out = y.data<T>();
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      out[i] = Store<T>(Load(left[i]) + Load(right[i]));
    }
    return absl::OkStatus();
  }
};

// Fill and Copy support every dtype, so they dispatch on dtypes themselves.
template <typename ThisOp>
absl::Status Fill(const ThisOp& op, double value, FixedOut y) {
  if (y.tensor.dtype() == DType::kI64) {  // counters among a module's buffers
    std::fill_n(y.tensor.data<std::int64_t>(), y.tensor.numel(),
                static_cast<std::int64_t>(value));
    return absl::OkStatus();
  }
  return ForFloating(op.name(), y.tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    std::fill_n(y.tensor.data<T>(), y.tensor.numel(), Store<T>(value));
    return absl::OkStatus();
  });
}

template <typename ThisOp>
absl::Status SetValues(const ThisOp& op, const std::vector<double>& values,
                       FixedOut y) {
  return ForFloating(op.name(), y.tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    std::transform(values.begin(), values.end(), y.tensor.data<T>(),
                   [](double value) { return Store<T>(value); });
    return absl::OkStatus();
  });
}

template <typename ThisOp>
absl::Status Copy(const ThisOp& op, FixedIn x, FixedOut y) {
  return ForFloating(op.name(), x.tensor.dtype(), [&](auto from) {
    using From = decltype(from);
    return ForFloating(op.name(), y.tensor.dtype(), [&](auto to) {
      using To = decltype(to);
      const From* in = x.tensor.data<From>();
      To* out = y.tensor.data<To>();
      for (std::int64_t i = 0; i < x.tensor.numel(); ++i) {
        out[i] = Store<To>(Load(in[i]));
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

template <>
void BindFamily(ElementwiseKernels& ops) {
  BindFloating<ReluForward>(ops.ReluForward);
  BindFloating<ReluBackward>(ops.ReluBackward);
  BindFloating<Scale>(ops.Scale);
  BindFloating<CountNonFinite>(ops.CountNonFinite);
  BindFloating<Add>(ops.Add);
  ops.Fill.BindFunction(Fill, nullptr);
  ops.SetValues.BindFunction(SetValues, nullptr);
  ops.Copy.BindFunction(Copy, nullptr);
}

}  // namespace troupe::nn::reference
