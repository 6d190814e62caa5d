#include "tests/nn/ops/op_case.h"

#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {

std::vector<OpCase> AllOpCases() {
  std::vector<OpCase> all;
  AddLinearCases(all);
  AddAttentionCases(all);
  AddRotaryCases(all);
  AddConv2dCases(all);
  AddPool2dCases(all);
  AddBatchNormCases(all);
  AddBiasCases(all);
  AddNormCases(all);
  AddPad2dCases(all);
  AddElementwiseCases(all);
  AddDropoutCases(all);
  AddEmbeddingCases(all);
  AddLayoutCases(all);
  AddLossCases(all);
  AddOptimizerCases(all);
  AddUnaryCases(all);
  AddBinaryCases(all);
  AddSoftmaxCases(all);
  AddReductionCases(all);
  AddMatMulCases(all);
  AddStridedCases(all);
  AddSelectCases(all);
  AddIndexingCases(all);
  return all;
}

}  // namespace troupe::nn
