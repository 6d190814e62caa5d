// One front of nn/ops on small tensors, as data. The table of all of them,
// AllFrontCases(), is checked against finite differences (gradient_test.cc)
// and, if tools/golden/fronts has a case of the same name, against PyTorch on
// every kernel set (golden_fronts.h).
//
//   {"linear", /*inputs=*/{{4, 3}}, /*weights=*/{{5, 3}, {5}},
//    [](Context& ctx, const Tensors& v) {
//      return ops::Linear(ctx, v[0], v[1], v[2]);
//    }}
//
// A front that returns a loss is differentiated as a loss: its sum.

#ifndef TESTS_NN_FRONTS_FRONT_CASE_H_
#define TESTS_NN_FRONTS_FRONT_CASE_H_

#include <functional>
#include <string>
#include <vector>

#include "nn/autograd/context.h"

namespace troupe::nn {

using Tensors = std::vector<Tensor>;

struct FrontCase {
  std::string name;  // letters, digits and underscores; unique
  std::vector<Shape> inputs;
  std::vector<Shape> weights;  // after the inputs in `forward`'s list
  // Runs in the dtype of its tensors.
  std::function<Tensor(Context&, const Tensors&)> forward;
  // False if the gradient intentionally differs from the derivative, as that of
  // a padding row: then it is compared with PyTorch only.
  bool is_derivative = true;
};

// Returns the cases of every family below.
std::vector<FrontCase> AllFrontCases();

// Append the cases of <family>_fronts.cc.
void AddActivationFronts(std::vector<FrontCase>& all);
void AddArithmeticFronts(std::vector<FrontCase>& all);
void AddAttentionFronts(std::vector<FrontCase>& all);
void AddBasicFronts(std::vector<FrontCase>& all);
void AddConvFronts(std::vector<FrontCase>& all);
void AddIndexFronts(std::vector<FrontCase>& all);
void AddLoopFronts(std::vector<FrontCase>& all);
void AddLossFronts(std::vector<FrontCase>& all);
void AddMatMulFronts(std::vector<FrontCase>& all);
void AddNormFronts(std::vector<FrontCase>& all);
void AddPoolFronts(std::vector<FrontCase>& all);
void AddShapeFronts(std::vector<FrontCase>& all);

}  // namespace troupe::nn

#endif  // TESTS_NN_FRONTS_FRONT_CASE_H_
