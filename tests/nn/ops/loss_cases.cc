#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

Operand Stats() { return {{3}, Operand::Fill::kPoison, DType::kF64, 0}; }

void AddLosses(std::int64_t N, std::int64_t C, std::vector<OpCase>& all) {
  const std::string size = absl::StrCat(N, "x", C);
  const Operand labels = {{N}, Operand::Fill::kLabels, DType::kI64, C};
  all.push_back({"cross_entropy_" + size,
                 {Normal({N, C}), labels},
                 {Stats(), Poison({N, C})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.SoftmaxCrossEntropy(in[0], in[1], kIgnoredLabel,
                                                out[0], out[1]);
                 }});
  all.push_back({"cross_entropy_stats_" + size,
                 {Normal({N, C}), labels},
                 {Stats()},
                 [](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.SoftmaxCrossEntropy(in[0], in[1], kIgnoredLabel,
                                                out[0], none);
                 }});
  all.push_back({"mse_" + size,
                 {Normal({N, C}), Normal({N, C})},
                 {Stats(), Poison({N, C})},
                 [](Kernels& k, Inputs in, Outputs out) {
                   return k.MeanSquaredError(in[0], in[1], out[0], out[1]);
                 }});
  all.push_back({"mse_stats_" + size,
                 {Normal({N, C}), Normal({N, C})},
                 {Stats()},
                 [](Kernels& k, Inputs in, Outputs out) {
                   Tensor none;
                   return k.MeanSquaredError(in[0], in[1], out[0], none);
                 }});
}

void AddCombinedLosses(std::vector<OpCase>& all) {
  const Operand loss = {{3}, Operand::Fill::kNormal, DType::kF64, 0};
  all.push_back(
      {"scale_loss", {loss}, {Stats()}, [](Kernels& k, Inputs in, Outputs out) {
         return k.CombineLosses(in[0], 0.3, Tensor(), 0, out[0]);
       }});
  all.push_back({"add_losses",
                 {loss, loss},
                 {Stats(), loss},
                 [](Kernels& k, Inputs in, Outputs out) -> absl::Status {
                   TROUPE_RETURN_IF_ERROR(
                       k.CombineLosses(in[0], 1, out[1], -0.7, out[1]));
                   TROUPE_RETURN_IF_ERROR(k.Add(in[0], in[1], out[0]));
                   return k.CombineLosses(in[0], 1, out[0], 1, out[0]);
                 }});
}

}  // namespace

void AddLossCases(std::vector<OpCase>& all) {
  AddLosses(0, 10, all);
  AddLosses(1, 2, all);
  AddLosses(32, 10, all);
  AddLosses(13, 1000, all);
  AddLosses(201, 17, all);
  AddLosses(3, 4096, all);
  AddLosses(2, 2999, all);
  AddCombinedLosses(all);
}

}  // namespace troupe::nn
