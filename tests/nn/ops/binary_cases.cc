#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

struct NamedFunction {
  const char* name;
  BinaryFunction function;
};

constexpr NamedFunction kFunctions[] = {
    {"add", BinaryFunction::kAdd},
    {"subtract", BinaryFunction::kSubtract},
    {"multiply", BinaryFunction::kMultiply},
    {"divide", BinaryFunction::kDivide},
    {"equal", BinaryFunction::kEqual},
    {"keep", BinaryFunction::kKeep},
    {"not_equal", BinaryFunction::kNotEqual},
    {"less", BinaryFunction::kLess},
    {"less_equal", BinaryFunction::kLessEqual},
};

OpCase Case(const std::string& name, BinaryFunction f, const Operand& a,
            const Operand& b, bool element_wise) {
  return {"binary_" + name,
          {a, b},
          {Poison(*BroadcastShape(a.shape, b.shape))},
          [f](Kernels& k, Inputs in, Outputs out) {
            return k.Binary(f, in[0], in[1], out[0]);
          },
          element_wise};
}

struct BroadcastCase {
  const char* name;
  Shape a, b;
};

// Rows that are whole vectors and rows that are not, repeated on either side.
const std::vector<BroadcastCase>& BroadcastCases() {
  static const auto* cases = new std::vector<BroadcastCase>{
      {"row", {5, 3, 32}, {32}},
      {"odd_row", {4, 19}, {19}},
      {"row_on_the_left", {7}, {6, 7}},
      {"scalar", {3, 50}, {}},
      {"scalar_on_the_left", {1}, {33}},
      {"column", {6, 40}, {6, 1}},
      {"outer", {5, 1}, {1, 24}},
      {"middle", {2, 3, 5, 16}, {2, 1, 5, 1}},
      {"both", {3, 1, 4, 1, 8}, {1, 5, 1, 7, 8}},
      {"rank_6", {2, 1, 3, 1, 2, 5}, {1, 4, 1, 2, 1, 5}},
      {"of_no_rank", {}, {}},
      {"empty", {4}, {0, 4}},
  };
  return *cases;
}

}  // namespace

void AddBinaryCases(std::vector<OpCase>& all) {
  for (const NamedFunction& f : kFunctions) {
    for (std::int64_t n : {0, 9, 64, 1003}) {
      all.push_back(Case(absl::StrCat(f.name, "_", n), f.function, Normal({n}),
                         Normal({n}), /*element_wise=*/true));
    }
    const Operand special = {{40}, Operand::Fill::kSpecial, {}, 0};
    all.push_back(Case(absl::StrCat(f.name, "_special"), f.function, special,
                       Normal({40}), /*element_wise=*/true));
    all.push_back(Case(absl::StrCat(f.name, "_both_special"), f.function,
                       special, special, /*element_wise=*/true));
    all.push_back({absl::StrCat("binary_", f.name, "_in_place"),
                   {Normal({3, 20})},
                   {Normal({3, 20})},
                   [f](Kernels& k, Inputs in, Outputs out) {
                     return k.Binary(f.function, out[0], in[0], out[0]);
                   }});
  }
  for (const BroadcastCase& c : BroadcastCases()) {
    all.push_back(Case(c.name, BinaryFunction::kSubtract, Normal(c.a),
                       Normal(c.b), /*element_wise=*/false));
  }
}

}  // namespace troupe::nn
