#include "nn/kernels/softmax.h"

#include <cmath>

#include "nn/kernels/reference/reference_ops.h"

namespace troupe::nn::reference {
namespace {

// Calls row(i) with the index of the first element of each row.
template <typename Row>
void ForEachRow(const Tensor& t, Row row) {
  const std::int64_t C = t.dim(-1);
  for (std::int64_t i = 0; i < t.numel(); i += C) row(i);
}

struct SoftmaxForward {
  template <typename T>
  static absl::Status Run(SoftmaxForm form, In x, Tensor& y) {
    const std::int64_t C = x.dim(-1);
    ForEachRow(x, [&](std::int64_t begin) {
      const T* in = x.data<T>() + begin;
      T* out = y.data<T>() + begin;
      double largest = Load(in[0]);
      for (std::int64_t c = 1; c < C; ++c) {
        const double value = Load(in[c]);
        if (!(value <= largest)) largest = value;  // NaN stays
      }
      double sum = 0;
      for (std::int64_t c = 0; c < C; ++c) {
        sum += std::exp(Load(in[c]) - largest);
      }
      for (std::int64_t c = 0; c < C; ++c) {
        const double above = Load(in[c]) - largest;
        out[c] = Store<T>(form == SoftmaxForm::kLog ? above - std::log(sum)
                                                    : std::exp(above) / sum);
      }
    });
    return absl::OkStatus();
  }
};

struct SoftmaxBackward {
  template <typename T>
  static absl::Status Run(SoftmaxForm form, In y, In dy, Tensor& dx) {
    const std::int64_t C = y.dim(-1);
    const bool log = form == SoftmaxForm::kLog;
    ForEachRow(y, [&](std::int64_t begin) {
      const T* value = y.data<T>() + begin;
      const T* in = dy.data<T>() + begin;
      T* out = dx.data<T>() + begin;
      double sum = 0;
      for (std::int64_t c = 0; c < C; ++c) {
        sum += log ? Load(in[c]) : Load(in[c]) * Load(value[c]);
      }
      for (std::int64_t c = 0; c < C; ++c) {
        out[c] = Store<T>(log ? Load(in[c]) - std::exp(Load(value[c])) * sum
                              : Load(value[c]) * (Load(in[c]) - sum));
      }
    });
    return absl::OkStatus();
  }
};

}  // namespace

template <>
void BindFamily(SoftmaxKernels& ops) {
  BindFloating<SoftmaxForward>(ops.SoftmaxForward);
  BindFloating<SoftmaxBackward>(ops.SoftmaxBackward);
}

}  // namespace troupe::nn::reference
