#include <algorithm>

#include "nn/kernels/cpu/cpu_kernel_set.h"

namespace troupe::nn::cpu {
namespace {

using Way = OneDnn::Way;

float* DataOrNull(const Tensor& t) {
  return t.defined() ? t.data<float>() : nullptr;
}

}  // namespace

absl::Status CpuKernelSet::LinearForward(const Tensor& x, const Tensor& w,
                                         const Tensor& b, Tensor& y) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_y = wide.Out(y);
    return wide.Finish(
        LinearForward(wide.In(x), wide.In(w), wide.In(b), wide_y));
  }
  if (x.dtype() != DType::kF32) return Unsupported("LinearForward", x);
  const std::int64_t n = x.dim(0), k = x.dim(1), m = w.dim(0);
  if (uses_onednn_ &&
      OneDnn::WantsLinear(Way::kForward, options_.threads, n, k, m)) {
    for (std::int64_t i = 0; b.defined() && i < n; ++i) {
      std::copy_n(b.data<float>(), m, y.data<float>() + i * m);
    }
    return GetOneDnn().Linear(Way::kForward, n, k, m, x.data<float>(),
                              w.data<float>(), /*accumulate=*/b.defined(),
                              y.data<float>());
  }
  if (uses_onednn_ &&
      OneDnn::WantsLinear(Way::kBackwardInput, options_.threads, n, k, m)) {
    GetOneDnn().PrepareLinear();  // until backward gets there
  }
  loops_.linear_forward(n, k, m, x.data<float>(), w.data<float>(),
                        DataOrNull(b), y.data<float>(),
                        Scratch(loops_.linear_scratch(n, k, m)));
  return absl::OkStatus();
}

absl::Status CpuKernelSet::LinearBackwardInput(const Tensor& dy,
                                               const Tensor& w, Tensor& dx) {
  if (IsNarrow(dy)) {
    Widened wide(*this, allocator_);
    Tensor wide_dx = wide.Out(dx);
    return wide.Finish(LinearBackwardInput(wide.In(dy), wide.In(w), wide_dx));
  }
  if (dy.dtype() != DType::kF32) return Unsupported("LinearBackwardInput", dy);
  const std::int64_t n = dy.dim(0), k = w.dim(1), m = w.dim(0);
  if (uses_onednn_ &&
      OneDnn::WantsLinear(Way::kBackwardInput, options_.threads, n, k, m)) {
    return GetOneDnn().Linear(Way::kBackwardInput, n, k, m, dy.data<float>(),
                              w.data<float>(), /*accumulate=*/false,
                              dx.data<float>());
  }
  loops_.linear_backward_input(n, k, m, dy.data<float>(), w.data<float>(),
                               dx.data<float>(),
                               Scratch(loops_.linear_scratch(n, k, m)));
  return absl::OkStatus();
}

absl::Status CpuKernelSet::LinearBackwardWeight(const Tensor& x,
                                                const Tensor& dy,
                                                bool accumulate, Tensor& dw,
                                                Tensor& db) {
  if (IsNarrow(x)) {
    Widened wide(*this, allocator_);
    Tensor wide_dw = wide.Out(dw, accumulate);
    Tensor wide_db = wide.Out(db, accumulate);
    return wide.Finish(LinearBackwardWeight(wide.In(x), wide.In(dy), accumulate,
                                            wide_dw, wide_db));
  }
  if (x.dtype() != DType::kF32) return Unsupported("LinearBackwardWeight", x);
  const std::int64_t n = x.dim(0), k = x.dim(1), m = dy.dim(1);
  if (uses_onednn_ &&
      OneDnn::WantsLinear(Way::kBackwardWeight, options_.threads, n, k, m)) {
    TROUPE_RETURN_IF_ERROR(GetOneDnn().Linear(Way::kBackwardWeight, n, k, m,
                                              x.data<float>(), dy.data<float>(),
                                              accumulate, dw.data<float>()));
  } else {
    loops_.linear_backward_weight(n, k, m, x.data<float>(), dy.data<float>(),
                                  accumulate, dw.data<float>(),
                                  Scratch(loops_.linear_scratch(n, k, m)));
  }
  if (db.defined()) {
    loops_.column_sums(n, m, dy.data<float>(), accumulate, db.data<float>());
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn::cpu
