#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddTransposes(const Shape& nhwc, std::vector<OpCase>& all) {
  const Shape nchw = {nhwc[0], nhwc[3], nhwc[1], nhwc[2]};
  const std::string size =
      absl::StrCat(nhwc[0], "x", nhwc[1], "x", nhwc[2], "x", nhwc[3]);
  all.push_back({"nhwc_to_nchw_" + size,
                 {Normal(nhwc)},
                 {Poison(nchw)},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.NhwcToNchw(in[0], out[0]);
                 }});
  all.push_back({"nchw_to_nhwc_" + size,
                 {Normal(nchw)},
                 {Poison(nhwc)},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.NchwToNhwc(in[0], out[0]);
                 }});
}

}  // namespace

void AddLayoutCases(std::vector<OpCase>& all) {
  AddTransposes({0, 5, 5, 16}, all);
  AddTransposes({2, 5, 5, 16}, all);
  AddTransposes({3, 4, 7, 5}, all);
  AddTransposes({2, 9, 11, 70}, all);
}

}  // namespace troupe::nn
