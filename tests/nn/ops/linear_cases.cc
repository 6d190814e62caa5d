#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddLinear(std::int64_t N, std::int64_t K, std::int64_t M,
               std::vector<OpCase>& all) {
  const std::string size = absl::StrCat(N, "x", K, "x", M);
  const Operand x = Normal({N, K}), w = Normal({M, K}), b = Normal({M});
  const Operand dy = Normal({N, M});
  all.push_back({absl::StrCat("linear_", size),
                 {x, w, b},
                 {Poison({N, M})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.LinearForward(in[0], in[1], in[2], out[0]);
                 }});
  all.push_back({absl::StrCat("linear_no_bias_", size),
                 {x, w},
                 {Poison({N, M})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.LinearForward(in[0], in[1], Tensor(), out[0]);
                 }});
  all.push_back({absl::StrCat("linear_dx_", size),
                 {dy, w},
                 {Poison({N, K})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.LinearBackwardInput(in[0], in[1], out[0]);
                 }});
  // Terms from the middle on, to the end or short of it.
  const TermRange of_k = {K / 3, K}, of_m = {M / 3, (3 * M + 3) / 4};
  all.push_back({absl::StrCat("linear_terms_", size),
                 {x, w},
                 {Poison({N, M})},
                 [of_k](Kernels& k, Inputs in, Outputs out) {
                   return k.LinearForwardTerms(in[0], in[1], of_k, out[0]);
                 }});
  all.back().host_only = true;
  for (bool accumulate : {false, true}) {
    all.push_back(
        {absl::StrCat("linear_dx_terms_", accumulate ? "added_" : "", size),
         {dy, w},
         {Gradient(accumulate, {N, K})},
         [of_m, accumulate](Kernels& k, Inputs in, Outputs out) {
           return k.LinearBackwardInputTerms(in[0], in[1], of_m, accumulate,
                                             out[0]);
         }});
    all.back().host_only = true;
  }
  for (bool accumulate : {false, true}) {
    all.push_back({absl::StrCat("linear_dw_", accumulate ? "added_" : "", size),
                   {x, dy},
                   {Gradient(accumulate, {M, K}), Gradient(accumulate, {M})},
                   [accumulate](Kernels& k, Inputs in, Outputs out) {
                     return k.LinearBackwardWeight(in[0], in[1], accumulate,
                                                   out[0], out[1]);
                   }});
  }
  all.push_back({absl::StrCat("linear_dw_no_bias_", size),
                 {x, dy},
                 {Poison({M, K})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.LinearBackwardWeight(in[0], in[1], false, out[0],
                                                 none);
                 }});
}

}  // namespace

void AddLinearCases(std::vector<OpCase>& all) {
  AddLinear(1, 1, 1, all);
  AddLinear(20, 10, 5, all);
  AddLinear(7, 33, 17, all);
  AddLinear(32, 784, 48, all);
  AddLinear(64, 120, 84, all);
  AddLinear(1, 512, 10, all);
  AddLinear(0, 33, 17, all);
}

}  // namespace troupe::nn
