#include "nn/kernels/cpu/widening.h"

#include <utility>

#include "base/check.h"

namespace troupe::nn::cpu {
namespace {

bool IsNarrow(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16;
}

}  // namespace

Tensor Widened::Copy(const Tensor& t, bool read) {
  if (!t.defined() || !IsNarrow(t.dtype())) return t;
  absl::StatusOr<Tensor> wide =
      Tensor::Temporary(t.shape(), DType::kF32, cpu_.allocator());
  if (!wide.ok()) {
    status_.Update(wide.status());
    return t;
  }
  if (read) ConvertAny(cpu_.loops(), t, *wide);
  return *std::move(wide);
}

Tensor Widened::CopyOfResult(const Result& result, bool read) {
  Tensor& t = result.tensor;
  Tensor wide = Copy(t, read);
  if (wide.dtype() == t.dtype()) return wide;
  TROUPE_CHECK(count_ < static_cast<int>(results_.size()),
               "an op has at most four results");
  results_[count_++] = {wide, &t};
  return wide;
}

void Widened::Finish() {
  for (int i = 0; i < count_; ++i) {
    ConvertAny(cpu_.loops(), results_[i].wide, *results_[i].narrow);
  }
}

DType RefusedDType(std::initializer_list<const Tensor*> operands) {
  for (const Tensor* t : operands) {
    if (t == nullptr || !t->defined()) continue;
    const DType dtype = t->dtype();
    if (dtype != DType::kF32 && !IsNarrow(dtype)) return dtype;
  }
  return DType::kF32;
}

}  // namespace troupe::nn::cpu
