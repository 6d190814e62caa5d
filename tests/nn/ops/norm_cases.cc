#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

struct NormCase {
  std::string name;
  Shape x;  // [N, S, C]
  NormRule rule;
};

Operand StatsOf(const NormCase& c) {
  return {{c.x[0], c.rule.groups, 2}, Operand::Fill::kPoison, DType::kF64, 0};
}

void AddForward(const NormCase& c, bool weight, std::vector<OpCase>& all) {
  const Operand w = Normal({c.x[2]});
  all.push_back({absl::StrCat(c.name, weight ? "" : "_no_weight"),
                 {Normal(c.x), w, w},
                 {Poison(c.x), StatsOf(c)},
                 [rule = c.rule, weight](Kernels& k, Inputs in, Outputs out) {
                   return k.NormForward(rule, in[0], weight ? in[1] : Tensor(),
                                        weight ? in[2] : Tensor(), out[0],
                                        out[1]);
                 }});
}

// Adds the cases of a norm with a sum: of its input, and of its gradient with
// another. Only for rows.
void AddAfterSum(const NormCase& c, bool weight, std::vector<OpCase>& all) {
  const Operand w = Normal({c.x[2]});
  all.push_back({absl::StrCat("add_", c.name, weight ? "" : "_no_weight"),
                 {Normal(c.x), Normal(c.x), w, w},
                 {Poison(c.x), Poison(c.x), StatsOf(c)},
                 [rule = c.rule, weight](Kernels& k, Inputs in, Outputs out) {
                   return k.AddNormForward(
                       rule, in[0], in[1], weight ? in[2] : Tensor(),
                       weight ? in[3] : Tensor(), out[0], out[1], out[2]);
                 }});
  all.push_back(
      {absl::StrCat("add_", c.name, weight ? "" : "_no_weight", "_dx"),
       {Normal(c.x), w, Normal(c.x), Normal(c.x)},
       {Poison(c.x), StatsOf(c), Poison(c.x)},
       [rule = c.rule, weight](Kernels& k, Inputs in,
                               Outputs out) -> absl::Status {
         const Tensor w = weight ? in[1] : Tensor();
         TROUPE_RETURN_IF_ERROR(
             k.NormForward(rule, in[0], w, Tensor(), out[0], out[1]));
         return k.AddNormBackwardInput(rule, in[0], out[1], w, in[2], in[3],
                                       out[2]);
       }});
}

void AddBackwardInput(const NormCase& c, std::vector<OpCase>& all) {
  all.push_back(
      {c.name + "_dx",
       {Normal(c.x), Normal({c.x[2]}), Normal(c.x)},
       {Poison(c.x), StatsOf(c), Poison(c.x)},
       [rule = c.rule](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         TROUPE_RETURN_IF_ERROR(
             k.NormForward(rule, in[0], in[1], Tensor(), out[0], out[1]));
         return k.NormBackwardInput(rule, in[0], out[1], in[1], in[2], out[2]);
       }});
}

void AddBackwardWeight(const NormCase& c, bool accumulate,
                       std::vector<OpCase>& all) {
  const Operand gradient = Gradient(accumulate, {c.x[2]});
  all.push_back({absl::StrCat(c.name, accumulate ? "_dw_added" : "_dw"),
                 {Normal(c.x), Normal(c.x)},
                 {Poison(c.x), StatsOf(c), gradient, gradient},
                 [rule = c.rule, accumulate](Kernels& k, Inputs in,
                                             Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(k.NormForward(
                       rule, in[0], Tensor(), Tensor(), out[0], out[1]));
                   return k.NormBackwardWeight(rule, in[0], out[1], in[1],
                                               accumulate, out[2], out[3]);
                 }});
}

void AddAll(const NormCase& c, std::vector<OpCase>& all) {
  AddForward(c, /*weight=*/true, all);
  AddForward(c, /*weight=*/false, all);
  AddBackwardInput(c, all);
  if (c.rule.groups == 1 && c.x[1] == 1) {
    AddAfterSum(c, /*weight=*/true, all);
    AddAfterSum(c, /*weight=*/false, all);
  }
  AddBackwardWeight(c, /*accumulate=*/false, all);
  AddBackwardWeight(c, /*accumulate=*/true, all);
}

// Adds all ops in one case, for a batch without samples.
void AddEmpty(const NormCase& c, std::vector<OpCase>& all) {
  const Operand gradient = Poison({c.x[2]});
  all.push_back(
      {c.name,
       {Normal(c.x), Normal({c.x[2]})},
       {Poison(c.x), StatsOf(c), Poison(c.x), gradient, gradient},
       [rule = c.rule](Kernels& k, Inputs in, Outputs out) -> absl::Status {
         TROUPE_RETURN_IF_ERROR(
             k.NormForward(rule, in[0], in[1], in[1], out[0], out[1]));
         TROUPE_RETURN_IF_ERROR(
             k.NormBackwardInput(rule, in[0], out[1], in[1], in[0], out[2]));
         return k.NormBackwardWeight(rule, in[0], out[1], in[0], false, out[3],
                                     out[4]);
       }});
}

}  // namespace

void AddNormCases(std::vector<OpCase>& all) {
  const NormRule layer;
  const NormRule rms = {/*groups=*/1, /*centered=*/false, /*eps=*/1e-6};
  const auto group = [](std::int64_t groups) {
    return NormRule{groups, /*centered=*/true, /*eps=*/1e-5};
  };
  AddAll({"layer_norm_64", {33, 1, 64}, layer}, all);
  AddAll({"layer_norm_odd", {7, 1, 37}, layer}, all);
  AddAll({"layer_norm_long", {3, 1, 5003}, layer}, all);
  AddAll({"layer_norm_768", {20, 1, 768}, layer}, all);
  AddAll({"rms_norm_96", {18, 1, 96}, rms}, all);
  AddAll({"rms_norm_odd", {5, 1, 19}, rms}, all);
  AddAll({"group_norm_one_place", {9, 1, 24}, group(3)}, all);
  AddAll({"group_norm_even", {3, 49, 32}, group(4)}, all);
  AddAll({"group_norm_odd", {2, 15, 21}, group(7)}, all);
  AddAll({"group_norm_instance", {3, 30, 5}, group(5)}, all);
  AddAll({"group_norm_one_group", {2, 300, 18}, group(1)}, all);
  AddEmpty({"layer_norm_empty_batch", {0, 1, 64}, layer}, all);
  AddEmpty({"rms_norm_empty_batch", {0, 1, 19}, rms}, all);
  AddEmpty({"group_norm_empty_batch", {0, 6, 12}, group(3)}, all);
  AddAfterSum({"layer_norm_empty_batch", {0, 1, 64}, layer}, /*weight=*/true,
              all);
}

}  // namespace troupe::nn
