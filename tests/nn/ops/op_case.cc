#include "tests/nn/ops/op_case.h"

#include "tests/nn/ops/family_cases.h"

namespace troupe::nn {

std::vector<OpCase> AllOpCases() {
  std::vector<OpCase> all;
  AddLinearCases(all);
  AddConv2dCases(all);
  AddPool2dCases(all);
  AddElementwiseCases(all);
  AddDropoutCases(all);
  AddEmbeddingCases(all);
  AddLayoutCases(all);
  AddLossCases(all);
  AddOptimizerCases(all);
  return all;
}

}  // namespace troupe::nn
