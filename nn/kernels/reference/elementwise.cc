#include <algorithm>

#include "nn/kernels/reference/element.h"
#include "nn/kernels/reference/reference_impl.h"

namespace troupe::nn::reference {

absl::Status ReferenceKernels::ReluForward(const Tensor& x, Tensor& y) {
  return ForFloating("ReluForward", x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const double value = Load(in[i]);
      out[i] = Store<T>(value <= 0 ? 0 : value);  // NaN stays
    }
  });
}

absl::Status ReferenceKernels::ReluBackward(const Tensor& y, const Tensor& dy,
                                            Tensor& dx) {
  return ForFloating("ReluBackward", y.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* activation = y.data<T>();
    const T* in = dy.data<T>();
    T* out = dx.data<T>();
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      out[i] = Store<T>(Load(activation[i]) > 0 ? Load(in[i]) : 0);
    }
  });
}

absl::Status ReferenceKernels::NhwcToNchw(const Tensor& x, Tensor& y) {
  const std::int64_t N = x.dim(0), pixels = x.dim(1) * x.dim(2), C = x.dim(3);
  return ForFloating("NhwcToNchw", x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t c = 0; c < C; ++c) {
        for (std::int64_t i = 0; i < pixels; ++i) {
          out[(n * C + c) * pixels + i] = in[(n * pixels + i) * C + c];
        }
      }
    }
  });
}

absl::Status ReferenceKernels::NchwToNhwc(const Tensor& x, Tensor& y) {
  const std::int64_t N = x.dim(0), C = x.dim(1), pixels = x.dim(2) * x.dim(3);
  return ForFloating("NchwToNhwc", x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* in = x.data<T>();
    T* out = y.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t i = 0; i < pixels; ++i) {
        for (std::int64_t c = 0; c < C; ++c) {
          out[(n * pixels + i) * C + c] = in[(n * C + c) * pixels + i];
        }
      }
    }
  });
}

absl::Status ReferenceKernels::CountNonFinite(const Tensor& x, Tensor& count) {
  return ForFloating("CountNonFinite", x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* from = x.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      if (!std::isfinite(Load(from[i]))) count.data<double>()[0] += 1;
    }
  });
}

absl::Status ReferenceKernels::Scale(const Tensor& x, const Tensor& factor,
                                     Tensor& y) {
  const double by = factor.data<double>()[0];
  return ForFloating("Scale", x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* from = x.data<T>();
    T* to = y.data<T>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      to[i] = Store<T>(Load(from[i]) * by);
    }
  });
}

absl::Status ReferenceKernels::Add(const Tensor& a, const Tensor& b,
                                   Tensor& y) {
  return ForFloating("Add", a.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* left = a.data<T>();
    const T* right = b.data<T>();
    T* out = y.data<T>();
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      out[i] = Store<T>(Load(left[i]) + Load(right[i]));
    }
  });
}

absl::Status ReferenceKernels::Fill(double value, Tensor& y) {
  if (y.dtype() == DType::kI64) {  // counters among a module's buffers
    std::fill_n(y.data<std::int64_t>(), y.numel(),
                static_cast<std::int64_t>(value));
    return absl::OkStatus();
  }
  return ForFloating("Fill", y.dtype(), [&](auto element) {
    using T = decltype(element);
    std::fill_n(y.data<T>(), y.numel(), Store<T>(value));
  });
}

absl::Status ReferenceKernels::Copy(const Tensor& x, Tensor& y) {
  absl::Status copied;
  absl::Status read = ForFloating("Copy", x.dtype(), [&](auto from) {
    using From = decltype(from);
    copied = ForFloating("Copy", y.dtype(), [&](auto to) {
      using To = decltype(to);
      const From* in = x.data<From>();
      To* out = y.data<To>();
      for (std::int64_t i = 0; i < x.numel(); ++i) {
        out[i] = Store<To>(Load(in[i]));
      }
    });
  });
  return read.ok() ? copied : read;
}

}  // namespace troupe::nn::reference
