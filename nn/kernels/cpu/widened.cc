#include "nn/kernels/cpu/widened.h"

namespace troupe::nn::cpu {

Tensor Widened::In(const Tensor& t) {
  if (!t.defined() || !IsNarrow(t)) return t;
  Tensor wide = Tensor::Empty(t.shape(), DType::kF32, allocator_);
  status_.Update(kernels_.Copy(t, wide));
  return wide;
}

Tensor Widened::Out(Tensor& t, bool read) {
  if (!t.defined() || !IsNarrow(t)) return t;
  TROUPE_CHECK(count_ < static_cast<int>(results_.size()),
               "an op has at most four results");
  Tensor wide = Tensor::Empty(t.shape(), DType::kF32, allocator_);
  if (read) status_.Update(kernels_.Copy(t, wide));
  results_[count_++] = {wide, &t};
  return wide;
}

absl::Status Widened::Finish(absl::Status status) {
  status_.Update(status);
  for (int i = 0; i < count_; ++i) {
    if (!status_.ok()) break;
    status_.Update(kernels_.Copy(results_[i].wide, *results_[i].narrow));
  }
  return status_;
}

}  // namespace troupe::nn::cpu
