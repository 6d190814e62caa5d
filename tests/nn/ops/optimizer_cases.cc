#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {
namespace {

void AddSgd(const std::string& name, const SgdRule& rule, std::int64_t n,
            std::vector<OpCase>& all) {
  const bool has_momentum = rule.momentum != 0;
  OpCase sgd;
  sgd.name = absl::StrCat("sgd_", name, "_", n);
  sgd.inputs = {Normal({n}), Normal({n}), Normal({n})};
  sgd.outputs = {Normal({n})};
  if (has_momentum) sgd.outputs.push_back(Poison({n}));
  sgd.element_wise = true;
  sgd.run = [rule, has_momentum](Kernels& k, Inputs grads,
                                 Outputs out) -> absl::Status {
    StepScalars values;
    values.lr = 0.2;
    values.loss_count = 1.5;
    values.loss_scale = 2;
    Tensor none, scalars = HostScalars(StepScalars(), k.allocator());
    for (const Tensor& grad : grads) {
      TROUPE_RETURN_IF_ERROR(k.SetStepScalars(values, scalars));
      TROUPE_RETURN_IF_ERROR(k.SgdUpdate(rule, scalars, grad, out[0],
                                         has_momentum ? out[1] : none));
      values.step += 1;
    }
    return absl::OkStatus();
  };
  all.push_back(std::move(sgd));
}

void AddAllSgd(std::int64_t n, std::vector<OpCase>& all) {
  SgdRule plain;
  plain.lr_factor = 0.5;
  SgdRule decay = plain;
  decay.weight_decay = 0.01;
  SgdRule momentum = decay;
  momentum.momentum = 0.9;
  momentum.dampening = 0.1;
  SgdRule nesterov = decay;
  nesterov.momentum = 0.9;
  nesterov.nesterov = true;
  AddSgd("plain", plain, n, all);
  AddSgd("decay", decay, n, all);
  AddSgd("momentum", momentum, n, all);
  AddSgd("nesterov", nesterov, n, all);
}

}  // namespace

void AddOptimizerCases(std::vector<OpCase>& all) {
  for (std::int64_t n : {0, 1, 7, 16, 64, 1000}) AddAllSgd(n, all);
}

}  // namespace troupe::nn
