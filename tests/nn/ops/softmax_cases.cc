#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddForms(const std::string& name, const Operand& x,
              std::vector<OpCase>& all) {
  for (SoftmaxForm form : {SoftmaxForm::kPlain, SoftmaxForm::kLog}) {
    const bool log = form == SoftmaxForm::kLog;
    all.push_back({absl::StrCat(log ? "log_softmax_" : "softmax_", name),
                   {x, Normal(x.shape)},
                   {Poison(x.shape), Poison(x.shape)},
                   [form](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                     TROUPE_RETURN_IF_ERROR(
                         k.SoftmaxForward(form, in[0], out[0]));
                     return k.SoftmaxBackward(form, out[0], in[1], out[1]);
                   }});
  }
}

}  // namespace

void AddSoftmaxCases(std::vector<OpCase>& all) {
  const std::pair<const char*, Shape> shapes[] = {
      {"vector", {17}},       {"one_class", {5, 1}}, {"even", {6, 4, 64}},
      {"odd", {3, 7}},        {"long", {2, 1500}},   {"long_odd", {3, 2301}},
      {"many_rows", {300, 8}}};
  for (const auto& [name, shape] : shapes) AddForms(name, Normal(shape), all);
  // Each row holds a NaN or an infinity.
  AddForms("special", {{4, 13}, Operand::Fill::kSpecial, {}, 0}, all);
  for (SoftmaxForm form : {SoftmaxForm::kPlain, SoftmaxForm::kLog}) {
    const bool log = form == SoftmaxForm::kLog;
    all.push_back({log ? "log_softmax_in_place" : "softmax_in_place",
                   {Normal({5, 24})},
                   {Normal({5, 24}), Normal({5, 24})},
                   [form](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                     TROUPE_RETURN_IF_ERROR(
                         k.SoftmaxForward(form, out[0], out[0]));
                     return k.SoftmaxBackward(form, in[0], out[1], out[1]);
                   }});
  }
}

}  // namespace troupe::nn
