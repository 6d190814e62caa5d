#include "nn/kernels/select.h"

#include <algorithm>
#include <cstdint>

#include "nn/kernels/cpu/outer_loops.h"
#include "nn/kernels/cpu/widening.h"
#include "nn/kernels/element_formulas.h"

namespace troupe::nn::cpu {
namespace {

// Elements are words of their size. A floating number is 0 if all of its bits
// but the sign are.
template <typename Flag>
bool IsNonzero(Flag flag) {
  return static_cast<Flag>(flag << 1) != 0;
}

// Without branches, which an irregular condition would mispredict.
template <bool kOneA, bool kOneB, typename Flag, typename Word>
void SelectRow(std::int64_t n, const Flag* flag, const Word* a, const Word* b,
               Word* y) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Word of_a = a[kOneA ? 0 : i], of_b = b[kOneB ? 0 : i];
    const Word keep = static_cast<Word>(-std::int64_t{IsNonzero(flag[i])});
    y[i] = static_cast<Word>((of_a & keep) | (of_b & ~keep));
  }
}

// A run of the last axis of y, along which an operand has one element or n.
struct Run {
  std::int64_t n;
  bool one_flag, one_a, one_b;
};

template <typename Flag, typename Word>
void SelectRun(const Run& run, const Flag* flag, const Word* a, const Word* b,
               Word* y) {
  if (run.one_flag) {
    const bool take_a = IsNonzero(*flag);
    const Word* const from = take_a ? a : b;
    if (take_a ? run.one_a : run.one_b) {
      std::fill_n(y, run.n, *from);
    } else {
      std::copy_n(from, run.n, y);
    }
  } else if (run.one_a) {
    run.one_b ? SelectRow<true, true>(run.n, flag, a, b, y)
              : SelectRow<true, false>(run.n, flag, a, b, y);
  } else {
    run.one_b ? SelectRow<false, true>(run.n, flag, a, b, y)
              : SelectRow<false, false>(run.n, flag, a, b, y);
  }
}

template <typename Flag, typename Word>
absl::Status SelectWords(const Tensor& condition, const Tensor& a,
                         const Tensor& b, const Tensor& y) {
  const auto* const flag = static_cast<const Flag*>(condition.raw());
  const auto* const from_a = static_cast<const Word*>(a.raw());
  const auto* const from_b = static_cast<const Word*>(b.raw());
  auto* const to = static_cast<Word*>(y.raw());
  const Shape& shape = y.shape();
  if (y.numel() == 0) return absl::OkStatus();
  // Operands that are whole or one element: a single run.
  const auto is_simple = [&](const Tensor& t) {
    return t.numel() == 1 || t.numel() == y.numel();
  };
  if (is_simple(condition) && is_simple(a) && is_simple(b)) {
    SelectRun<Flag, Word>(
        {y.numel(), condition.numel() == 1, a.numel() == 1, b.numel() == 1},
        flag, from_a, from_b, to);
    return absl::OkStatus();
  }
  const int last = shape.rank() - 1;
  const Strides of_flag = BroadcastStrides(shape, condition.shape());
  const Strides of_a = BroadcastStrides(shape, a.shape());
  const Strides of_b = BroadcastStrides(shape, b.shape());
  const Run run = {shape[last], of_flag[last] == 0, of_a[last] == 0,
                   of_b[last] == 0};
  for (std::int64_t row = 0; row * run.n < y.numel(); ++row) {
    std::int64_t at_flag = 0, at_a = 0, at_b = 0, rest = row;
    for (int axis = last - 1; axis >= 0; --axis) {
      const std::int64_t index = rest % shape[axis];
      rest /= shape[axis];
      at_flag += index * of_flag[axis];
      at_a += index * of_a[axis];
      at_b += index * of_b[axis];
    }
    SelectRun(run, flag + at_flag, from_a + at_a, from_b + at_b,
              to + row * run.n);
  }
  return absl::OkStatus();
}

template <typename Flag>
absl::Status SelectBy(In condition, In a, In b, const Tensor& y) {
  switch (SizeOf(y.dtype())) {
    case 2:
      return SelectWords<Flag, std::uint16_t>(condition, a, b, y);
    case 4:
      return SelectWords<Flag, std::uint32_t>(condition, a, b, y);
    case 8:
      return SelectWords<Flag, std::uint64_t>(condition, a, b, y);
    default:
      return DoesNotCompute("Select", y.dtype(), y.device());
  }
}

absl::Status Select(CpuDevice&, In condition, In a, In b, Tensor& y) {
  switch (condition.dtype()) {
    case DType::kBF16:
    case DType::kF16:
      return SelectBy<std::uint16_t>(condition, a, b, y);
    case DType::kF32:
      return SelectBy<std::uint32_t>(condition, a, b, y);
    case DType::kF64:
      return SelectBy<std::uint64_t>(condition, a, b, y);
    default:
      return DoesNotCompute("Select", condition.dtype(), condition.device());
  }
}

absl::Status CompareIntegers(CpuDevice&, BinaryFunction f, In a, In b,
                             Tensor& y) {
  const StridedLoops loops = BroadcastLoops(y.shape(), a.shape(), b.shape());
  const auto* const left = a.data<std::int64_t>();
  const auto* const right = b.data<std::int64_t>();
  float* to = y.data<float>();
  ForEachOuter(loops, /*inner=*/0, [&](std::int64_t at_a, std::int64_t at_b) {
    *to++ = Holds(f, left[at_a], right[at_b]) ? 1.0f : 0.0f;
  });
  return absl::OkStatus();
}

}  // namespace

template <>
void BindFamily(CpuDevice& cpu, SelectKernels& ops) {
  ops.Select.Bind<Select>(&cpu);
  BindF32<CompareIntegers>(cpu, ops.CompareIntegers);
}

}  // namespace troupe::nn::cpu
