#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

struct LinearForward {
  template <typename T>
  static absl::Status Run(In x_NK, In w_MK, In b_M, Tensor& y_NM) {
    const std::int64_t N = x_NK.dim(0), K = x_NK.dim(1), M = w_MK.dim(0);
    const T* x = x_NK.data<T>();
    const T* w = w_MK.data<T>();
    const T* b = b_M.defined() ? b_M.data<T>() : nullptr;
    T* y = y_NM.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t m = 0; m < M; ++m) {
        double sum = b ? Load(b[m]) : 0;
        for (std::int64_t k = 0; k < K; ++k) {
          sum += Load(x[n * K + k]) * Load(w[m * K + k]);
        }
        y[n * M + m] = Store<T>(sum);
      }
    }
    return absl::OkStatus();
  }
};

struct LinearBackwardInput {
  template <typename T>
  static absl::Status Run(In dy_NM, In w_MK, Tensor& dx_NK) {
    const std::int64_t N = dy_NM.dim(0), M = dy_NM.dim(1), K = w_MK.dim(1);
    const T* dy = dy_NM.data<T>();
    const T* w = w_MK.data<T>();
    T* dx = dx_NK.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t k = 0; k < K; ++k) {
        double sum = 0;
        for (std::int64_t m = 0; m < M; ++m) {
          sum += Load(dy[n * M + m]) * Load(w[m * K + k]);
        }
        dx[n * K + k] = Store<T>(sum);
      }
    }
    return absl::OkStatus();
  }
};

struct LinearBackwardWeight {
  template <typename T>
  static absl::Status Run(In x_NK, In dy_NM, bool accumulate, Tensor& dw_MK,
                          Tensor& db_M) {
    const std::int64_t N = x_NK.dim(0), K = x_NK.dim(1), M = dy_NM.dim(1);
    const T* x = x_NK.data<T>();
    const T* dy = dy_NM.data<T>();
    T* dw = dw_MK.data<T>();
    T* db = db_M.defined() ? db_M.data<T>() : nullptr;
    for (std::int64_t m = 0; m < M; ++m) {
      for (std::int64_t k = 0; k < K; ++k) {
        double sum = accumulate ? Load(dw[m * K + k]) : 0;
        for (std::int64_t n = 0; n < N; ++n) {
          sum += Load(dy[n * M + m]) * Load(x[n * K + k]);
        }
        dw[m * K + k] = Store<T>(sum);
      }
      if (!db) continue;
      double sum = accumulate ? Load(db[m]) : 0;
      for (std::int64_t n = 0; n < N; ++n) sum += Load(dy[n * M + m]);
      db[m] = Store<T>(sum);
    }
    return absl::OkStatus();
  }
};

struct LinearBackwardWeightRows {
  template <typename T>
  static absl::Status Run(In x_NK, In dy_NM, std::int64_t begin,
                          Tensor& dw_RK) {
    const std::int64_t N = x_NK.dim(0), K = x_NK.dim(1), M = dy_NM.dim(1);
    const T* x = x_NK.data<T>();
    const T* dy = dy_NM.data<T>() + begin;
    T* dw = dw_RK.data<T>();
    for (std::int64_t r = 0; r < dw_RK.dim(0); ++r) {
      for (std::int64_t k = 0; k < K; ++k) {
        double sum = 0;
        for (std::int64_t n = 0; n < N; ++n) {
          sum += Load(dy[n * M + r]) * Load(x[n * K + k]);
        }
        dw[r * K + k] = Store<T>(sum);
      }
    }
    return absl::OkStatus();
  }
};

struct LinearForwardTerms {
  template <typename T>
  static absl::Status Run(In x_NK, In w_MK, TermRange terms, Tensor& y_NM) {
    const std::int64_t N = x_NK.dim(0), K = x_NK.dim(1), M = w_MK.dim(0);
    const T* x = x_NK.data<T>();
    const T* w = w_MK.data<T>();
    T* y = y_NM.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t m = 0; m < M; ++m) {
        double sum = 0;
        for (std::int64_t k = terms.begin; k < terms.end; ++k) {
          sum += Load(x[n * K + k]) * Load(w[m * K + k]);
        }
        y[n * M + m] = Store<T>(sum);
      }
    }
    return absl::OkStatus();
  }
};

struct LinearBackwardInputTerms {
  template <typename T>
  static absl::Status Run(In dy_NM, In w_MK, TermRange terms, bool accumulate,
                          Tensor& dx_NK) {
    const std::int64_t N = dy_NM.dim(0), M = dy_NM.dim(1), K = w_MK.dim(1);
    const T* dy = dy_NM.data<T>();
    const T* w = w_MK.data<T>();
    T* dx = dx_NK.data<T>();
    for (std::int64_t n = 0; n < N; ++n) {
      for (std::int64_t k = 0; k < K; ++k) {
        double sum = accumulate ? Load(dx[n * K + k]) : 0;
        for (std::int64_t m = terms.begin; m < terms.end; ++m) {
          sum += Load(dy[n * M + m]) * Load(w[m * K + k]);
        }
        dx[n * K + k] = Store<T>(sum);
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(LinearKernels& ops) {
  BindFloating<LinearForward>(ops.LinearForward);
  BindFloating<LinearBackwardInput>(ops.LinearBackwardInput);
  BindFloating<LinearBackwardWeight>(ops.LinearBackwardWeight);
  BindFloating<LinearBackwardWeightRows>(ops.LinearBackwardWeightRows);
  BindFloating<LinearForwardTerms>(ops.LinearForwardTerms);
  BindFloating<LinearBackwardInputTerms>(ops.LinearBackwardInputTerms);
}

}  // namespace troupe::nn::reference
