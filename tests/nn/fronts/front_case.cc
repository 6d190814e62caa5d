#include "tests/nn/fronts/front_case.h"

namespace troupe::nn {

std::vector<FrontCase> AllFrontCases() {
  std::vector<FrontCase> all;
  AddActivationFronts(all);
  AddArithmeticFronts(all);
  AddAttentionFronts(all);
  AddBasicFronts(all);
  AddConvFronts(all);
  AddIndexFronts(all);
  AddLoopFronts(all);
  AddLossFronts(all);
  AddMatMulFronts(all);
  AddNormFronts(all);
  AddPoolFronts(all);
  AddShapeFronts(all);
  return all;
}

}  // namespace troupe::nn
