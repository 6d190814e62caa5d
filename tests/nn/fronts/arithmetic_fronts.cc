// Cases of the fronts of arithmetic, and of sums and means.

#include <string>
#include <utility>
#include <vector>

#include "nn/ops/arithmetic.h"
#include "nn/ops/reduce.h"
#include "tests/nn/fronts/front_case.h"

namespace troupe::nn {
namespace {

// Returns numbers above 0.
Tensor Positive(Context& ctx, const Tensor& x) {
  return ops::AddScalar(ctx, ops::Mul(ctx, x, x), 0.5);
}

// Returns x minus the means of its rows.
Tensor Centered(Context& ctx, const Tensor& x) {
  return ops::Sub(ctx, x, ops::Mean(ctx, x, {-1}, /*keep_dims=*/true));
}

std::vector<FrontCase> BinaryCases() {
  return {
      {"sub_same",
       {{3, 4}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Sub(ctx, v[0], v[1]);
       }},
      {"mul_same",
       {{3, 4}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mul(ctx, v[0], v[1]);
       }},
      {"div_same",
       {{3, 4}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Div(ctx, v[0], Positive(ctx, v[1]));
       }},
      {"add_row",
       {{2, 3, 4}, {4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Add(ctx, v[0], v[1]);
       }},
      {"sub_row",
       {{2, 3, 4}, {4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Sub(ctx, v[0], v[1]);
       }},
      {"mul_row",
       {{2, 3, 4}, {4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mul(ctx, v[0], v[1]);
       }},
      {"div_row",
       {{2, 3, 4}, {4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Div(ctx, v[0], Positive(ctx, v[1]));
       }},
      {"add_scalar",
       {{3, 4}, {}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Add(ctx, v[0], v[1]);
       }},
      {"sub_scalar",
       {{3, 4}, {}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Sub(ctx, v[0], v[1]);
       }},
      {"mul_scalar",
       {{3, 4}, {}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mul(ctx, v[0], v[1]);
       }},
      {"div_scalar",
       {{3, 4}, {}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Div(ctx, v[0], Positive(ctx, v[1]));
       }},
      {"add_column",
       {{3, 1}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Add(ctx, v[0], v[1]);
       }},
      {"sub_column",
       {{3, 1}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Sub(ctx, v[0], v[1]);
       }},
      {"mul_column",
       {{3, 1}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mul(ctx, v[0], v[1]);
       }},
      {"div_column",
       {{3, 1}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Div(ctx, v[0], Positive(ctx, v[1]));
       }},
      {"add_outer",
       {{2, 1, 3}, {4, 1}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Add(ctx, v[0], v[1]);
       }},
      {"sub_outer",
       {{2, 1, 3}, {4, 1}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Sub(ctx, v[0], v[1]);
       }},
      {"mul_outer",
       {{2, 1, 3}, {4, 1}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mul(ctx, v[0], v[1]);
       }},
      {"div_outer",
       {{2, 1, 3}, {4, 1}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Div(ctx, v[0], Positive(ctx, v[1]));
       }},
      {"mul_rank_6",
       {{2, 1, 3, 1, 2, 1}, {1, 2, 1, 2, 2, 2}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mul(ctx, v[0], v[1]);
       }},
      {"square",
       {{7}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mul(ctx, v[0], v[0]);
       }},
  };
}

std::vector<FrontCase> UnaryCases() {
  return {
      {"neg",
       {{5}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Neg(ctx, v[0]); }},
      {"exp",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Exp(ctx, v[0]); }},
      {"log",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Log(ctx, Positive(ctx, v[0]));
       }},
      {"sqrt",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Sqrt(ctx, Positive(ctx, v[0]));
       }},
      {"scale",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Scale(ctx, v[0], -0.75);
       }},
      {"add_a_constant",
       {{3, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::AddScalar(ctx, v[0], 2.5);
       }},
  };
}

std::vector<FrontCase> ReductionCases() {
  return {
      {"sum_of_all",
       {{3, 4, 2}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Sum(ctx, v[0]); }},
      {"sum_of_rows",
       {{4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Sum(ctx, v[0], {-1});
       }},
      {"sum_keep_dims",
       {{3, 4, 2}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Sum(ctx, v[0], {0, 2}, true);
       }},
      {"mean_of_all",
       {{3, 4, 2}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Mean(ctx, v[0]); }},
      {"mean_of_images",
       {{2, 3, 5, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mean(ctx, v[0], {1, 2});
       }},
      {"mean_keep_dims",
       {{2, 6}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mean(ctx, v[0], {1}, true);
       }},
      {"variance",
       {{4, 6}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Mean(
             ctx, ops::Mul(ctx, Centered(ctx, v[0]), Centered(ctx, v[0])),
             {-1});
       }},
  };
}

}  // namespace

void AddArithmeticFronts(std::vector<FrontCase>& all) {
  for (const auto& cases : {BinaryCases(), UnaryCases(), ReductionCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
}

}  // namespace troupe::nn
