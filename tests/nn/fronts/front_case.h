// One front of nn/ops on small tensors, as data. The table of all of them,
// AllFrontCases(), is checked against finite differences (gradient_test.cc)
// and, where tools/golden/fronts has a case of the same name, against PyTorch
// on every kernel set (golden_fronts.h).
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
  // Runs in the dtype of the tensors that it is given.
  std::function<Tensor(Context&, const Tensors&)> forward;
  // False where the gradient is meant to be another than the derivative, as
  // that of a padding row is: then PyTorch alone is asked.
  bool is_derivative = true;
};

// Those of every family below.
std::vector<FrontCase> AllFrontCases();

// Each appends the cases of <family>_fronts.cc.
void AddActivationFronts(std::vector<FrontCase>& all);
void AddArithmeticFronts(std::vector<FrontCase>& all);
void AddAttentionFronts(std::vector<FrontCase>& all);
void AddBasicFronts(std::vector<FrontCase>& all);
void AddConvFronts(std::vector<FrontCase>& all);
void AddLossFronts(std::vector<FrontCase>& all);
void AddMatMulFronts(std::vector<FrontCase>& all);
void AddNormFronts(std::vector<FrontCase>& all);
void AddPoolFronts(std::vector<FrontCase>& all);
void AddShapeFronts(std::vector<FrontCase>& all);

}  // namespace troupe::nn

#endif  // TESTS_NN_FRONTS_FRONT_CASE_H_
