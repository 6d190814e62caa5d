#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddRotary(const Shape& x, const RotaryRule& given,
               std::vector<OpCase>& all) {
  for (bool interleaved : {false, true}) {
    RotaryRule rule = given;
    rule.interleaved = interleaved;
    all.push_back(
        {absl::StrCat("rotary_", interleaved ? "pairs_" : "halves_", x[0], "x",
                      x[1], "x", x[2], "x", x[3], "_", rule.width),
         {Normal(x)},
         {Poison(x), Normal(x)},
         [rule](Kernels& k, Inputs in, Outputs out) -> absl::Status {
           RotaryRule inverse = rule;
           inverse.inverse = true;
           TROUPE_RETURN_IF_ERROR(k.Rotary(rule, in[0], out[0]));
           return k.Rotary(inverse, out[1], out[1]);
         }});
  }
}

RotaryRule Rule(std::int64_t width, std::int64_t heads, std::int64_t first) {
  RotaryRule rule;
  rule.width = width;
  rule.heads = heads;
  rule.first = first;
  return rule;
}

}  // namespace

void AddRotaryCases(std::vector<OpCase>& all) {
  AddRotary({0, 3, 2, 4}, Rule(4, 2, 0), all);
  AddRotary({1, 2, 1, 2}, Rule(2, 1, 0), all);
  AddRotary({2, 5, 3, 7}, Rule(6, 3, 3), all);
  AddRotary({2, 40, 3, 64}, Rule(64, 2, 0), all);
  AddRotary({1, 33, 2, 48}, Rule(16, 2, 1000), all);
}

}  // namespace troupe::nn
