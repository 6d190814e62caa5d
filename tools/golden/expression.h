// An expression of ops as a text program, and its values and gradients by the
// front for loops (nn/autograd/var.h). tools/golden/expressions.py draws such
// programs, and compares the results with PyTorch's.
//
//   TROUPE_ASSIGN_OR_RETURN(const std::vector<Expression> drawn,
//                           ParseExpressions(text));
//   TROUPE_ASSIGN_OR_RETURN(
//       const std::vector<nn::NamedTensor> results,
//       Evaluate(drawn[0], inputs, nn::DType::kF64, *kernels));
//
// A text has one step per line, and ends each expression with its scalar:
//
//     expression 17
//     x0 = input
//     c0 = constant
//     v1 = Exp x0
//     v2 v3 = Sort v1 axis=-1 descending=1
//     v4 = * v2 2.5
//     v5 = + v4 c0
//     v6 = Sum v5 axes=0,1
//     backward v6
//
// The tensors of "input", which get gradients, and of "constant" are in the
// file of inputs, as "17/x0" and "17/c0". Operands are names or numbers;
// attributes are name=value. expression_ops.h has the other ops.
//
// Results are "17/v1" for each value (a loss's mean) and "17/x0.grad" for each
// input that backward reaches.
//
// Errors name the expression and its line.

#ifndef TOOLS_GOLDEN_EXPRESSION_H_
#define TOOLS_GOLDEN_EXPRESSION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/kernels/kernels.h"
#include "nn/serialize/safetensors.h"

namespace troupe::golden {

// "v2 v3 = Sort v1 axis=-1 descending=1"
struct ExpressionStep {
  std::string text;
  std::vector<std::string> outputs;
  std::string op;
  std::vector<std::string> operands;
  std::map<std::string, std::string> attributes;
};

struct Expression {
  std::string name;
  std::vector<ExpressionStep> steps;
  std::string root;  // name of the value that backward begins at
};

//   kInvalidArgument: a line is none of the above; has its number and text.
absl::StatusOr<std::vector<Expression>> ParseExpressions(
    absl::string_view text);

// Computes the expression in `dtype`, to which floating tensors of `inputs` are
// rounded.
//   kInvalidArgument, and errors of ops: the line and what is wrong.
absl::StatusOr<std::vector<nn::NamedTensor>> Evaluate(
    const Expression& expression, const nn::SafetensorsFile& inputs,
    nn::DType dtype, nn::Kernels& kernels);

}  // namespace troupe::golden

#endif  // TOOLS_GOLDEN_EXPRESSION_H_
