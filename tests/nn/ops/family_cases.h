// The cases of each family of ops (nn/kernels/README.md): those of family x are
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
void AddAttentionCases(std::vector<OpCase>& all);
void AddRotaryCases(std::vector<OpCase>& all);
void AddConv2dCases(std::vector<OpCase>& all);
void AddPool2dCases(std::vector<OpCase>& all);
void AddBatchNormCases(std::vector<OpCase>& all);
void AddBiasCases(std::vector<OpCase>& all);
void AddNormCases(std::vector<OpCase>& all);
void AddPad2dCases(std::vector<OpCase>& all);
void AddElementwiseCases(std::vector<OpCase>& all);
void AddDropoutCases(std::vector<OpCase>& all);
void AddEmbeddingCases(std::vector<OpCase>& all);
void AddLayoutCases(std::vector<OpCase>& all);
void AddLossCases(std::vector<OpCase>& all);
void AddOptimizerCases(std::vector<OpCase>& all);
void AddUnaryCases(std::vector<OpCase>& all);
void AddBinaryCases(std::vector<OpCase>& all);
void AddSoftmaxCases(std::vector<OpCase>& all);
void AddReductionCases(std::vector<OpCase>& all);
void AddMatMulCases(std::vector<OpCase>& all);
void AddStridedCases(std::vector<OpCase>& all);
void AddSelectCases(std::vector<OpCase>& all);
void AddIndexingCases(std::vector<OpCase>& all);

inline Operand Normal(const Shape& shape) {
  return {shape, Operand::Fill::kNormal, {}, 0};
}
inline Operand Poison(const Shape& shape) {
  return {shape, Operand::Fill::kPoison, {}, 0};
}
inline Operand Zeros(const Shape& shape) {
  return {shape, Operand::Fill::kZero, {}, 0};
}
// Returns the gradient that an op adds to, or overwrites.
inline Operand Gradient(bool accumulate, const Shape& shape) {
  return accumulate ? Normal(shape) : Poison(shape);
}

// A window over images x[N, H, W, C].
struct ImageCase {
  std::string name;
  Shape x;
  std::int64_t O;  // output channels of a convolution
  Window2d window;
  std::int64_t groups = 1;  // groups of a convolution
  // Extents of a pooling's output, if windows extend past the image.
  std::int64_t y_rows = 0, y_columns = 0;

  Shape Output(std::int64_t channels) const {
    return {x[0], window.OutH(x[1]), window.OutW(x[2]), channels};
  }
};

}  // namespace troupe::nn

#endif  // TESTS_NN_OPS_FAMILY_CASES_H_
