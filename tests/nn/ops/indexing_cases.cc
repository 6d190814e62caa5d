#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

constexpr auto kLongOnGpus = 1500;  // more than kernels rank by counting

// The first J of x[O, K, I] in both orders.
void AddSorts(const Shape& x, std::int64_t J, std::vector<OpCase>& all) {
  const Shape y = {x[0], J, x[2]};
  for (const bool special : {false, true}) {
    const auto fill =
        special ? Operand::Fill::kSpecial : Operand::Fill::kNormal;
    for (const bool descending : {false, true}) {
      all.push_back({absl::StrCat(descending ? "sort_down_" : "sort_up_",
                                  special ? "special_" : "", x[0], "x", x[1],
                                  "x", x[2], "_to_", J),
                     {{x, fill, {}, 0}},
                     {Poison(y), {y, Operand::Fill::kZero, DType::kI64, 0}},
                     [descending](Kernels& k, Inputs in, Outputs out) {
                       return k.SortAxis(descending, in[0], out[0], out[1]);
                     }});
    }
  }
}

// y[O, J, I] from x[O, K, I], and back.
void AddIndexed(const Shape& x, const Shape& index, std::vector<OpCase>& all) {
  const Shape y = {x[0], index[1], x[2]};
  const Operand indices = {index, Operand::Fill::kRows, DType::kI64, x[1]};
  const std::string size = absl::StrCat(x[0], "x", x[1], "x", x[2], "_at_",
                                        index[0], "x", index[1], "x", index[2]);
  all.push_back({"gather_" + size,
                 {Normal(x), indices},
                 {Poison(y)},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.GatherAxis(in[0], in[1], out[0]);
                 }});
  all.push_back({"gather_i64_" + size,
                 {{x, Operand::Fill::kRows, DType::kI64, 1000}, indices},
                 {{y, Operand::Fill::kZero, DType::kI64, 0}},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.GatherAxis(in[0], in[1], out[0]);
                 }});
  for (const bool accumulate : {false, true}) {
    all.push_back({absl::StrCat("scatter_", accumulate ? "added_" : "", size),
                   {Normal(y), indices},
                   {Gradient(accumulate, x)},
                   [accumulate](Kernels& k, Inputs in, Outputs out) {
                     return k.ScatterAddAxis(in[0], in[1], accumulate, out[0]);
                   }});
  }
}

void AddCumulativeSums(const Shape& x, std::vector<OpCase>& all) {
  for (const bool from_last : {false, true}) {
    all.push_back(
        {absl::StrCat(from_last ? "cumulative_from_last_" : "cumulative_", x[0],
                      "x", x[1], "x", x[2]),
         {Normal(x)},
         {Poison(x)},
         [from_last](Kernels& k, Inputs in, Outputs out) {
           return k.CumulativeSum(from_last, in[0], out[0]);
         }});
  }
}

}  // namespace

void AddIndexingCases(std::vector<OpCase>& all) {
  AddSorts({1, 1, 1}, 1, all);
  AddSorts({6, 40, 1}, 40, all);
  AddSorts({3, 130, 2}, 7, all);
  AddSorts({0, 4, 3}, 4, all);
  AddSorts({2, 5, 3}, 0, all);
  AddSorts({2, kLongOnGpus, 1}, kLongOnGpus, all);
  AddSorts({1, kLongOnGpus, 3}, 20, all);
  AddIndexed({1, 1, 1}, {1, 1, 1}, all);
  AddIndexed({0, 4, 3}, {1, 2, 1}, all);
  AddIndexed({2, 4, 3}, {1, 0, 1}, all);
  AddIndexed({3, 9, 5}, {3, 14, 5}, all);     // torch.gather
  AddIndexed({300, 7, 1}, {300, 1, 1}, all);  // one of each row
  AddIndexed({1, 41, 24}, {1, 90, 1}, all);   // torch.index_select
  AddIndexed({4, 6, 33}, {1, 10, 1}, all);
  AddIndexed({4, 6, 33}, {1, 10, 33}, all);
  AddIndexed({4, 6, 33}, {4, 10, 1}, all);
  AddIndexed({1, 1000, 1}, {1, 1200, 1}, all);
  AddCumulativeSums({1, 1, 1}, all);
  AddCumulativeSums({6, 40, 1}, all);
  AddCumulativeSums({2, 700, 1}, all);
  AddCumulativeSums({3, 300, 7}, all);
  AddCumulativeSums({4, 0, 3}, all);
}

}  // namespace troupe::nn
