#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

struct NamedFunction {
  const char* name;
  UnaryFunction function;
  double parameter;
};

constexpr NamedFunction kFunctions[] = {
    {"negate", UnaryFunction::kNegate, 0},
    {"exp", UnaryFunction::kExp, 0},
    {"log", UnaryFunction::kLog, 0},
    {"sqrt", UnaryFunction::kSqrt, 0},
    {"scale", UnaryFunction::kScale, -0.3},
    {"add_scalar", UnaryFunction::kAddScalar, 0.7},
    {"leaky_relu", UnaryFunction::kLeakyRelu, 0.1},
    {"gelu", UnaryFunction::kGelu, 0},
    {"gelu_tanh", UnaryFunction::kGeluTanh, 0},
    {"silu", UnaryFunction::kSilu, 0},
    {"sigmoid", UnaryFunction::kSigmoid, 0},
    {"tanh", UnaryFunction::kTanh, 0},
    {"square", UnaryFunction::kSquare, 0},
    {"rsqrt", UnaryFunction::kRsqrt, 0},
    {"power_2_5", UnaryFunction::kPower, 2.5},
    {"power_3", UnaryFunction::kPower, 3},
    {"power_minus_1", UnaryFunction::kPower, -1},
    {"absolute", UnaryFunction::kAbsolute, 0},
    {"sine", UnaryFunction::kSine, 0},
    {"cosine", UnaryFunction::kCosine, 0},
    {"at_least", UnaryFunction::kAtLeast, -0.5},
    {"at_most", UnaryFunction::kAtMost, 0.5},
};

void AddFunction(const NamedFunction& f, std::int64_t n, const char* kind,
                 const Operand& x, std::vector<OpCase>& all) {
  const auto forward_and_backward = [f](Kernels& k, Inputs in,
                                        Outputs out) -> absl::Status {
    TROUPE_RETURN_IF_ERROR(
        k.UnaryForward(f.function, f.parameter, in[0], out[0]));
    return k.UnaryBackward(f.function, f.parameter, in[0], in[1], out[1]);
  };
  all.push_back({absl::StrCat("unary_", f.name, kind, "_", n),
                 {x, Normal({n})},
                 {Poison({n}), Poison({n})},
                 forward_and_backward,
                 /*element_wise=*/true});
}

}  // namespace

void AddUnaryCases(std::vector<OpCase>& all) {
  for (const NamedFunction& f : kFunctions) {
    for (std::int64_t n : {0, 7, 64, 1003}) {
      AddFunction(f, n, "", Normal({n}), all);
    }
    AddFunction(f, 40, "_special", {{40}, Operand::Fill::kSpecial, {}, 0}, all);
    all.push_back({absl::StrCat("unary_", f.name, "_in_place"),
                   {},
                   {Normal({33})},
                   [f](Kernels& k, Inputs, Outputs out) {
                     return k.UnaryForward(f.function, f.parameter, out[0],
                                           out[0]);
                   },
                   /*element_wise=*/true});
  }
}

}  // namespace troupe::nn
