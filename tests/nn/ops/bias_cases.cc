#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddBias(const std::string& name, const Shape& y,
             std::vector<OpCase>& all) {
  const Shape b = {y[y.rank() - 1]};
  all.push_back({"bias_" + name,
                 {Normal(b)},
                 {Normal(y)},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.BiasForward(in[0], out[0]);
                 }});
  for (bool accumulate : {false, true}) {
    all.push_back({absl::StrCat("bias_db_", accumulate ? "added_" : "", name),
                   {Normal(y)},
                   {Gradient(accumulate, b)},
                   [accumulate](Kernels& k, Inputs in, Outputs out) {
                     return k.BiasBackward(in[0], accumulate, out[0]);
                   }});
  }
}

}  // namespace

void AddBiasCases(std::vector<OpCase>& all) {
  AddBias("images", {2, 3, 5, 7}, all);
  AddBias("rows", {9, 32}, all);
  AddBias("empty_batch", {0, 4, 5, 3}, all);
}

}  // namespace troupe::nn
