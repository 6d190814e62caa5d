// Cases of the front of matrix products.

#include <string>
#include <utility>
#include <vector>

#include "nn/ops/matmul.h"
#include "tests/nn/fronts/front_case.h"

namespace troupe::nn {
namespace {

std::vector<FrontCase> ProductCases() {
  return {
      {"matmul_plain",
       {{3, 4}, {4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1]);
       }},
      {"matmul_nt",
       {{3, 4}, {5, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1], {false, true});
       }},
      {"matmul_tn",
       {{4, 3}, {4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1], {true, false});
       }},
      {"matmul_tt",
       {{4, 3}, {5, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1], {true, true});
       }},
      {"matmul_batch",
       {{2, 3, 4}, {2, 4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1]);
       }},
      {"matmul_heads_nt",
       {{2, 2, 3, 4}, {2, 2, 5, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1], {false, true});
       }},
      {"matmul_batch_tn",
       {{2, 4, 3}, {2, 4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1], {true, false});
       }},
      {"matmul_one_b",
       {{2, 3, 3, 4}, {4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1]);
       }},
      {"matmul_one_b_nt",
       {{2, 3, 4}, {1, 5, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1], {false, true});
       }},
      {"matmul_one_b_tn",
       {{2, 4, 3}, {4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1], {true, false});
       }},
      {"matmul_one_a",
       {{3, 4}, {3, 4, 2}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1]);
       }},
      {"matmul_repeated",
       {{2, 1, 3, 4}, {3, 4, 2}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1]);
       }},
      {"matmul_repeated_tt",
       {{2, 1, 4, 3}, {3, 2, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::MatMul(ctx, v[0], v[1], {true, true});
       }},
  };
}

}  // namespace

void AddMatMulFronts(std::vector<FrontCase>& all) {
  const std::vector<FrontCase> cases = ProductCases();
  all.insert(all.end(), cases.begin(), cases.end());
}

}  // namespace troupe::nn
