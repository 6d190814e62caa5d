#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

// y = x with its axes in another order.
void AddPermutation(const std::string& name, const Shape& x,
                    const std::vector<int>& axes, std::vector<OpCase>& all) {
  const Strides of_x = StridesOf(x);
  Strides strides = {};
  Shape y = x;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    y.set(static_cast<int>(axis), x[axes[axis]]);
    strides[axis] = of_x[axes[axis]];
  }
  const StridedLoops loops = LoopsOver(y, strides, StridesOf(y));
  all.push_back({"permute_" + name,
                 {Normal(x)},
                 {Poison(y)},
                 [loops](Kernels& k, Inputs in, Outputs out) {
                   return k.CopyStrided(loops, in[0], out[0]);
                 }});
}

// Copies columns [3, 3 + cols) of x to columns from 2 on of y, whose other
// columns are unchanged.
void AddPart(const std::string& name, std::int64_t cols, DType dtype,
             std::vector<OpCase>& all) {
  StridedLoops loops = LoopsOver({5, cols}, {cols + 6, 1}, {cols + 4, 1});
  loops.a_begin = 3;
  loops.b_begin = 2;
  all.push_back({"part_" + name,
                 {{{5, cols + 6}, Operand::Fill::kNormal, dtype, 0}},
                 {{{5, cols + 4}, Operand::Fill::kNormal, dtype, 0}},
                 [loops](Kernels& k, Inputs in, Outputs out) {
                   return k.CopyStrided(loops, in[0], out[0]);
                 }});
}

}  // namespace

void AddStridedCases(std::vector<OpCase>& all) {
  AddPermutation("matrix", {37, 50}, {1, 0}, all);
  AddPermutation("large_matrix", {200, 96}, {1, 0}, all);
  AddPermutation("matrices", {3, 20, 17}, {0, 2, 1}, all);
  AddPermutation("heads", {2, 9, 4, 8}, {0, 2, 1, 3}, all);
  AddPermutation("odd_heads", {2, 9, 4, 5}, {0, 2, 1, 3}, all);
  AddPermutation("heads_transposed", {2, 9, 4, 8}, {0, 2, 3, 1}, all);
  AddPermutation("reversed", {3, 4, 5, 6}, {3, 2, 1, 0}, all);
  AddPermutation("rank_6", {2, 3, 2, 3, 2, 5}, {4, 1, 0, 5, 3, 2}, all);
  AddPermutation("as_it_is", {40, 3}, {0, 1}, all);
  AddPermutation("of_nothing", {3, 0, 4}, {2, 1, 0}, all);
  AddPermutation("of_no_rank", {}, {}, all);
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64, DType::kI64}) {
    AddPart(absl::StrCat(DTypeName(dtype)), 16, dtype, all);
  }
  AddPart("odd", 7, DType::kF32, all);
}

}  // namespace troupe::nn
