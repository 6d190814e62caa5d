#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

struct SelectCase {
  const char* name;
  Shape condition, a, b;
};

constexpr auto kSpecial = Operand::Fill::kSpecial;

// Conditions and sides that are whole, rows, columns and single elements.
std::vector<SelectCase> SelectCases() {
  return {
      {"none", {0, 4}, {4}, {1, 4}},
      {"of_no_rank", {}, {}, {}},
      {"whole", {3, 50}, {3, 50}, {3, 50}},
      {"flat", {1003}, {1003}, {1003}},
      {"filled", {77}, {}, {77}},
      {"kept", {77}, {77}, {1}},
      {"two_numbers", {6, 40}, {1}, {1, 1}},
      {"one_condition", {1}, {6, 40}, {6, 40}},
      {"one_of_two_numbers", {1, 1}, {}, {1, 9}},
      {"rows", {33}, {6, 33}, {6, 33}},
      {"columns", {6, 1}, {6, 33}, {1, 33}},
      {"matrices", {5, 7}, {2, 3, 5, 7}, {}},
      {"outer", {2, 1, 9}, {4, 1}, {2, 4, 9}},
      {"all_differ", {3, 1, 4, 1}, {1, 5, 1, 7}, {3, 1, 1, 7}},
  };
}

void AddIntegers(std::vector<OpCase>& all) {
  const BinaryFunction functions[] = {
      BinaryFunction::kEqual, BinaryFunction::kNotEqual, BinaryFunction::kLess,
      BinaryFunction::kLessEqual};
  struct IntegerCase {
    Shape a, b;
  };
  for (const IntegerCase& c :
       {IntegerCase{{0}, {1}}, IntegerCase{{70}, {70}}, IntegerCase{{9, 5}, {}},
        IntegerCase{{4, 1}, {3, 1, 6}}}) {
    for (const BinaryFunction f : functions) {
      const Shape y = *BroadcastShape(c.a, c.b);
      all.push_back({absl::StrCat("integers_", static_cast<int>(f), "_",
                                  c.a.numel(), "_", c.b.numel()),
                     {{c.a, Operand::Fill::kLabels, DType::kI64, 5},
                      {c.b, Operand::Fill::kRows, DType::kI64, 5}},
                     {Poison(y)},
                     [f](Kernels& k, Inputs in, Outputs out) {
                       return k.CompareIntegers(f, in[0], in[1], out[0]);
                     }});
    }
  }
}

}  // namespace

void AddSelectCases(std::vector<OpCase>& all) {
  const auto run = [](Kernels& k, Inputs in, Outputs out) {
    return k.Select(in[0], in[1], in[2], out[0]);
  };
  for (const SelectCase& c : SelectCases()) {
    const Shape y = *BroadcastShape(*BroadcastShape(c.condition, c.a), c.b);
    all.push_back({absl::StrCat("select_", c.name),
                   {{c.condition, kSpecial, {}, 0}, Normal(c.a), Normal(c.b)},
                   {Poison(y)},
                   run});
    // A condition of another dtype, and sides of 8 bytes.
    all.push_back({absl::StrCat("select_i64_", c.name),
                   {{c.condition, kSpecial, DType::kF32, 0},
                    {c.a, Operand::Fill::kLabels, DType::kI64, 100},
                    {c.b, Operand::Fill::kRows, DType::kI64, 100}},
                   {{y, Operand::Fill::kZero, DType::kI64, 0}},
                   run});
  }
  all.push_back(
      {"select_special",
       {{{40}, kSpecial, {}, 0}, Normal({40}), {{40}, kSpecial, {}, 0}},
       {Poison({40})},
       run,
       /*element_wise=*/true});
  AddIntegers(all);
}

}  // namespace troupe::nn
