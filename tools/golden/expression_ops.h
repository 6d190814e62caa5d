// The ops of an expression (expression.h), by the names that they have in C++:
// "Exp" and "+" of nn/autograd/var_math.h and var.h, "Full" of create.h, "Gelu"
// of nn/ops.
//
//   ExpressionValues values;
//   values.emplace("x0", x);
//   values.emplace("v1", Apply(ctx, nn::DType::kF64, step, values)[0]);
//
// Attributes have the names of the parameters, and their defaults if they are
// absent. Lists are "0,2", the empty one "".

#ifndef TOOLS_GOLDEN_EXPRESSION_OPS_H_
#define TOOLS_GOLDEN_EXPRESSION_OPS_H_

#include <map>
#include <string>
#include <vector>

#include "nn/autograd/context.h"
#include "nn/autograd/var.h"
#include "tools/golden/expression.h"

namespace troupe::golden {

using ExpressionValues = std::map<std::string, nn::Var>;

// Returns a value by its name. Throws base::StatusError if there is none.
const nn::Var& ValueOf(const ExpressionValues& values, const std::string& name);

// Computes one step; new tensors have `dtype`. Throws base::StatusError: there
// is no such op or value, or the op's own error.
std::vector<nn::Var> Apply(nn::Context& ctx, nn::DType dtype,
                           const ExpressionStep& step,
                           const ExpressionValues& values);

// Returns the names of all ops that Apply() has, in order.
std::vector<std::string> ExpressionOps();

}  // namespace troupe::golden

#endif  // TOOLS_GOLDEN_EXPRESSION_OPS_H_
