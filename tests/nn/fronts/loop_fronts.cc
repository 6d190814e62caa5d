// Cases of what loops and models of a program's own use: functions of numbers,
// extremes, repetitions, and expressions of Vars.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "nn/autograd/var_math.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/concat.h"
#include "nn/ops/expand.h"
#include "nn/ops/extremes.h"
#include "nn/ops/flip.h"
#include "nn/ops/reduce.h"
#include "nn/ops/triangle.h"
#include "tests/nn/fronts/front_case.h"

namespace troupe::nn {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Returns numbers above 0.
Tensor AboveZero(Context& ctx, const Tensor& x) {
  return ops::AddScalar(ctx, ops::Mul(ctx, x, x), 0.5);
}

// Returns zeros with the gradient of x.
Tensor ZerosOf(Context& ctx, const Tensor& x) {
  return ops::Sub(ctx, x, x.Detached());
}

Var Expression(const Var& x, const Var& y) {
  return (2 * x - y / 3) * (1 - x) + 0.5 / (y * y + 0.5) -
         (-x)[1] * y.Slice(1, 2, /*axis=*/1);
}

Var Shapes(const Var& x) {
  const Var rows = x.Transpose(0, 1).View({3, -1}).Unsqueeze(1);
  return rows.Slice(-3, Var::kEnd, -1).Permute({2, 1, 0}).Squeeze(1) *
         x[-1].Slice(0, 1, 1).Squeeze();
}

std::vector<FrontCase> LoopCases() {
  return {
      {"square_of",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Square(ctx, v[0]);
       }},
      {"rsqrt",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Rsqrt(ctx, AboveZero(ctx, v[0]));
       }},
      {"pow_2",
       {{7}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Pow(ctx, v[0], 2);
       }},
      {"pow_3",
       {{7}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Pow(ctx, v[0], 3);
       }},
      {"pow_minus_2",
       {{7}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Pow(ctx, AboveZero(ctx, v[0]), -2);
       }},
      {"pow_half",
       {{7}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Pow(ctx, AboveZero(ctx, v[0]), 0.5);
       }},
      {"pow_1_7",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Pow(ctx, AboveZero(ctx, v[0]), 1.7);
       }},
      {"pow_0",
       {{4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Mul(ctx, v[0], ops::Pow(ctx, v[0], 0));
       }},
      {"abs",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Abs(ctx, v[0]);
       }},
      {"abs_at_0",
       {{4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Abs(ctx, ZerosOf(ctx, v[0]));
       },
       /*is_derivative=*/false},
      {"sin",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Sin(ctx, ops::Scale(ctx, v[0], 4));
       }},
      {"cos",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Cos(ctx, ops::Scale(ctx, v[0], 4));
       }},
      {"clamp",
       {{30}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Clamp(ctx, v[0], -0.3, 0.4);
       }},
      {"clamp_below",
       {{30}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Clamp(ctx, v[0], -0.1, kNoLimit);
       }},
      {"clamp_at_the_limit",
       {{4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Clamp(ctx, ZerosOf(ctx, v[0]), 0, 0);
       },
       /*is_derivative=*/false},
      {"variance_of_all",
       {{4, 6}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Variance(ctx, v[0]);
       }},
      {"variance_of_rows",
       {{2, 3, 6}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Variance(ctx, v[0], {0, 2}, 0, true);
       }},
      {"max_of_rows",
       {{4, 9}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Max(ctx, v[0], 1).values;
       }},
      {"max_of_columns",
       {{2, 5, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Max(ctx, v[0], 1, true).values;
       }},
      {"min_of_rows",
       {{4, 9}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Min(ctx, v[0], -1).values;
       }},
      {"max_of_ties",
       {{2, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Max(ctx, ZerosOf(ctx, v[0]), 1).values;
       },
       /*is_derivative=*/false},
      {"amax_of_images",
       {{2, 3, 4, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Amax(ctx, v[0], {1, 2});
       }},
      {"amin_of_all",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Amin(ctx, v[0]);
       }},
      {"amax_of_ties",
       {{2, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Amax(ctx, ZerosOf(ctx, v[0]), {1}, true);
       },
       /*is_derivative=*/false},
      {"stack_in_front",
       {{2, 3}, {2, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Stack(ctx, v, 0);
       }},
      {"stack_behind",
       {{2, 3}, {2, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Stack(ctx, v, -1);
       }},
      {"expand_rows",
       {{1, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Expand(ctx, v[0], {3, 4});
       }},
      {"expand_in_front",
       {{4, 1}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Expand(ctx, v[0], {2, 4, 3});
       }},
      {"repeat",
       {{2, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Repeat(ctx, v[0], {2, 3});
       }},
      {"repeat_in_front",
       {{2, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Repeat(ctx, v[0], {2, 1, 2});
       }},
      {"flip_rows",
       {{4, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Flip(ctx, v[0], {0});
       }},
      {"flip_both",
       {{2, 4, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Flip(ctx, v[0], {0, -1});
       }},
      {"roll",
       {{4, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Roll(ctx, v[0], 1, 0);
       }},
      {"roll_back",
       {{2, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Roll(ctx, v[0], -7, 1);
       }},
      {"roll_around",
       {{3, 2}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Roll(ctx, v[0], 3, 0);
       }},
      {"tril",
       {{2, 4, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Tril(ctx, v[0]);
       }},
      {"tril_above",
       {{4, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Tril(ctx, v[0], 1);
       }},
      {"triu_below",
       {{5, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Triu(ctx, v[0], -1);
       }},
      {"var_expression",
       {{3, 4}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return Expression(Var(ctx, v[0]), Var(ctx, v[1]));
       }},
      {"var_shapes",
       {{2, 3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return Shapes(Var(ctx, v[0]));
       }},
  };
}

}  // namespace

void AddLoopFronts(std::vector<FrontCase>& all) {
  const std::vector<FrontCase> cases = LoopCases();
  all.insert(all.end(), cases.begin(), cases.end());
}

}  // namespace troupe::nn
