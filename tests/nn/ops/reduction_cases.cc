#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

// x[O, K, I], its extremes and where they are, and the place of each.
void AddExtremes(std::vector<OpCase>& all) {
  const Shape shapes[] = {{1, 1, 1},    {6, 40, 1},   {3, 700, 1}, {5, 3, 7},
                          {2, 130, 33}, {300, 65, 1}, {0, 4, 3},   {4, 9, 0}};
  for (const Shape& x : shapes) {
    for (const bool special : {false, true}) {
      for (const bool largest : {true, false}) {
        const Shape y = {x[0], x[2]};
        const auto fill =
            special ? Operand::Fill::kSpecial : Operand::Fill::kNormal;
        all.push_back(
            {absl::StrCat(largest ? "max_" : "min_", special ? "special_" : "",
                          x[0], "x", x[1], "x", x[2]),
             {{x, fill, {}, 0}},
             {Poison(y), {y, Operand::Fill::kZero, DType::kI64, 0}, Poison(x)},
             [largest](Kernels& k, Inputs in, Outputs out) -> absl::Status {
               TROUPE_RETURN_IF_ERROR(
                   k.ExtremeOfAxis(largest, in[0], out[0], out[1]));
               return k.PlaceAlongAxis(out[0], out[1], out[2]);
             }});
      }
    }
  }
  all.push_back(
      {"place_labels",
       {Normal({50, 1}), {{50, 1}, Operand::Fill::kLabels, DType::kI64, 7}},
       {Poison({50, 7, 1})},
       [](Kernels& k, Inputs in, Outputs out) {
         return k.PlaceAlongAxis(in[0], in[1], out[0]);
       }});
}

}  // namespace

void AddReductionCases(std::vector<OpCase>& all) {
  struct ReductionCase {
    const char* name;
    Shape x, y;
  };
  AddExtremes(all);
  const ReductionCase cases[] = {
      {"rows", {6, 40}, {6, 1}},
      {"rows_of_3", {50, 3}, {50, 1}},
      {"long_row", {2, 70000}, {2, 1}},
      {"columns", {300, 24}, {1, 24}},
      {"odd_columns", {77, 5}, {1, 5}},
      {"many_rows", {40000, 9}, {1, 9}},
      {"all", {3, 5, 7}, {1, 1, 1}},
      {"all_of_many", {200003}, {1}},
      {"images", {3, 5, 6, 16}, {3, 1, 1, 16}},
      {"all_but_channels", {3, 5, 6, 7}, {1, 1, 1, 7}},
      {"middle", {4, 70, 33}, {4, 1, 33}},
      {"first_and_last", {30, 4, 50}, {1, 4, 1}},
      {"every_other", {3, 4, 5, 6, 7, 2}, {3, 1, 5, 1, 7, 1}},
      {"none", {4, 5}, {4, 5}},
      {"axes_of_1", {1, 6, 1, 9}, {1, 1, 1, 9}},
      {"no_terms", {3, 0, 4}, {3, 1, 4}},
      {"scalar", {}, {}},
  };
  for (const ReductionCase& c : cases) {
    for (double divisor : {1.0, 7.0}) {
      all.push_back({absl::StrCat("sum_", c.name, "_over_", divisor),
                     {Normal(c.x)},
                     {Poison(c.y)},
                     [divisor](Kernels& k, Inputs in, Outputs out) {
                       return k.SumAxes(in[0], divisor, out[0]);
                     }});
    }
  }
}

}  // namespace troupe::nn
