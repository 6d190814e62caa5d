#include "nn/kernels/cpu/row_slices.h"

#include "base/check.h"

namespace troupe::nn::cpu {
namespace {

// Number of floats in the copy of one operand: a part of the first-level cache.
constexpr std::int64_t kFloatsAtOnce = 4096;

}  // namespace

RowSlices::RowSlices(CpuDevice& cpu, const RowsToCut& cut,
                     std::initializer_list<const Tensor*> in,
                     std::initializer_list<const Tensor*> out)
    : cpu_(cpu), cut_(cut) {
  TROUPE_CHECK(in.size() <= 3 && out.size() <= 3, "too many operands");
  const auto set = [rows = cut.rows](const Tensor* t, bool written,
                                     Operand& operand) {
    if (!t->defined()) return;
    operand.tensor = t;
    operand.cols = rows == 0 ? 0 : t->numel() / rows;
    operand.written = written;
    operand.narrow = t->dtype() != DType::kF32;
  };
  std::size_t at = 0;
  for (const Tensor* t : in) set(t, false, operands_[at++]);
  at = 3;
  for (const Tensor* t : out) set(t, true, operands_[at++]);
}

absl::Status RowSlices::Prepare() {
  std::int64_t widest = 0, cols = 0;
  for (const Operand& operand : operands_) {
    if (!operand.narrow && !cut_.cuts_f32) continue;
    widest = std::max(widest, operand.cols);
    cols += operand.narrow ? operand.cols : 0;
  }
  rows_at_once_ = cut_.rows;
  if (widest == 0) return absl::OkStatus();
  const std::int64_t groups =
      std::max<std::int64_t>(1, kFloatsAtOnce / (widest * cut_.together));
  rows_at_once_ = std::min(cut_.rows, groups * cut_.together);
  if (cols == 0) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(
      copies_,
      Tensor::Create({rows_at_once_ * cols}, DType::kF32, cpu_.allocator()));
  float* copy = copies_.data<float>();
  for (Operand& operand : operands_) {
    if (!operand.narrow) continue;
    operand.copy = copy;
    copy += rows_at_once_ * operand.cols;
  }
  return absl::OkStatus();
}

bool RowSlices::Next(RowSlice& slice) {
  if (slice.rows > 0) {
    for (const Operand& operand : operands_) {
      if (operand.written && operand.narrow) Convert(operand, slice, false);
    }
  }
  slice.first += slice.rows;
  slice.rows = std::min(rows_at_once_, cut_.rows - slice.first);
  if (slice.rows <= 0) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    const Operand &in = operands_[i], &out = operands_[3 + i];
    if (in.narrow) Convert(in, slice, true);
    slice.in[i] = At(in, slice);
    slice.out[i] = At(out, slice);
  }
  return true;
}

void RowSlices::Round(const RowSlice& slice, int i) {
  const Operand& out = operands_[static_cast<std::size_t>(3 + i)];
  if (!out.narrow) return;
  Convert(out, slice, /*widens=*/false);
  Convert(out, slice, /*widens=*/true);
}

float* RowSlices::At(const Operand& operand, const RowSlice& slice) {
  if (operand.tensor == nullptr) return nullptr;
  if (operand.narrow) return operand.copy;
  return operand.tensor->data<float>() + slice.first * operand.cols;
}

void RowSlices::Convert(const Operand& operand, const RowSlice& slice,
                        bool widens) {
  const std::int64_t count = slice.rows * operand.cols;
  auto* const bits = static_cast<std::uint16_t*>(operand.tensor->raw()) +
                     slice.first * operand.cols;
  const Loops& loops = cpu_.loops();
  const bool is_bf16 = operand.tensor->dtype() == DType::kBF16;
  if (widens) {
    (is_bf16 ? loops.widen_bf16 : loops.widen_f16)(count, bits, operand.copy);
  } else {
    (is_bf16 ? loops.narrow_bf16 : loops.narrow_f16)(count, operand.copy, bits);
  }
}

absl::StatusOr<Tensor> AsF32(CpuDevice& cpu, const Tensor& t) {
  if (!t.defined() || t.dtype() == DType::kF32) return t;
  TROUPE_ASSIGN_OR_RETURN(
      Tensor wide, Tensor::Create(t.shape(), DType::kF32, cpu.allocator()));
  ConvertAny(cpu.loops(), t, wide);
  return wide;
}

}  // namespace troupe::nn::cpu
