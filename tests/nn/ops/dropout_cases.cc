#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddDropout(const Shape& x, std::vector<OpCase>& all) {
  DropoutMask mask{{RandomKey(/*seed=*/7, Purpose::kDropout), {5, 6, 7}}};
  mask.drop_below = 0x60000000;
  mask.scale = 1.6;
  all.push_back({absl::StrCat("dropout_", x[0], "x", x.numel()),
                 {Normal(x)},
                 {Poison(x), Normal(x)},
                 [mask](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.Dropout(mask, in[0], out[0]));
                   return k.Dropout(mask, out[1], out[1]);
                 }});
}

}  // namespace

void AddDropoutCases(std::vector<OpCase>& all) {
  AddDropout({0, 5}, all);
  AddDropout({3, 7}, all);
  AddDropout({2, 33, 70}, all);
  AddDropout({3, 4096}, all);
}

}  // namespace troupe::nn
