// The cases of each family of ops (nn/kernels/README.md): family x has its own
// in x_cases.cc.
//
//   std::vector<OpCase> all;
//   AddLinearCases(all);

#ifndef TESTS_NN_OPS_FAMILY_CASES_H_
#define TESTS_NN_OPS_FAMILY_CASES_H_

#include <string>
#include <vector>

#include "tests/nn/ops/op_case.h"

namespace troupe::nn {

void AddLinearCases(std::vector<OpCase>& all);
void AddConv2dCases(std::vector<OpCase>& all);
void AddPool2dCases(std::vector<OpCase>& all);
void AddElementwiseCases(std::vector<OpCase>& all);
void AddDropoutCases(std::vector<OpCase>& all);
void AddEmbeddingCases(std::vector<OpCase>& all);
void AddLayoutCases(std::vector<OpCase>& all);
void AddLossCases(std::vector<OpCase>& all);
void AddOptimizerCases(std::vector<OpCase>& all);

inline Operand Normal(const Shape& shape) {
  return {shape, Operand::Fill::kNormal, {}, 0};
}
inline Operand Poison(const Shape& shape) {
  return {shape, Operand::Fill::kPoison, {}, 0};
}
// The gradient that an op adds to, or overwrites.
inline Operand Gradient(bool accumulate, const Shape& shape) {
  return accumulate ? Normal(shape) : Poison(shape);
}

// A window over images x[N, H, W, C].
struct ImageCase {
  std::string name;
  Shape x;
  std::int64_t O;  // channels out of a convolution
  Window2d window;

  Shape Output(std::int64_t channels) const {
    return {x[0], window.OutH(x[1]), window.OutW(x[2]), channels};
  }
};

}  // namespace troupe::nn

#endif  // TESTS_NN_OPS_FAMILY_CASES_H_
