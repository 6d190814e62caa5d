// Cases of the fronts that move elements: reshape, permute, concat, slice.

#include <string>
#include <utility>
#include <vector>

#include "nn/ops/arithmetic.h"
#include "nn/ops/concat.h"
#include "nn/ops/permute.h"
#include "nn/ops/reshape.h"
#include "nn/ops/slice.h"
#include "tests/nn/fronts/front_case.h"

namespace troupe::nn {
namespace {

// Returns the product of both halves of the last axis.
Tensor Gated(Context& ctx, const Tensor& x) {
  const std::vector<Tensor> halves = ops::Split(ctx, x, -1, {3, 3});
  return ops::Mul(ctx, halves[0], halves[1]);
}

std::vector<FrontCase> ShapeCases() {
  return {
      {"reshape",
       {{2, 6}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Reshape(ctx, v[0], {3, 1, 4});
       }},
      {"reshape_of_what_is_used_twice",
       {{2, 6}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Add(ctx, ops::Reshape(ctx, v[0], {12}),
                         ops::Reshape(ctx, ops::Mul(ctx, v[0], v[0]), {12}));
       }},
      {"permute",
       {{2, 3, 4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Permute(ctx, v[0], {0, 2, 1, 3});
       }},
      {"permute_cycle",
       {{2, 3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Permute(ctx, v[0], {2, 0, -2});
       }},
      {"transpose",
       {{2, 3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Transpose(ctx, v[0], -1, -2);
       }},
      {"concat_rows",
       {{2, 3}, {1, 3}, {4, 3}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Concat(ctx, v, 0); }},
      {"concat_columns",
       {{2, 3}, {2, 1}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Concat(ctx, v, -1); }},
      {"concat_of_one_twice",
       {{2, 3, 2}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Concat(ctx, {v[0], v[0]}, 1);
       }},
      {"slice_rows",
       {{5, 3}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Slice(ctx, v[0], 0, 1, 4);
       }},
      {"slice_columns",
       {{2, 3, 6}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Slice(ctx, v[0], -1, 2, 5);
       }},
      {"slice_of_nothing",
       {{2, 3}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Concat(ctx, {v[0], ops::Slice(ctx, v[0], 1, 1, 1)}, 1);
       }},
      {"split",
       {{2, 3, 6}},
       {},
       [](Context& ctx, const Tensors& v) { return Gated(ctx, v[0]); }},
  };
}

}  // namespace

void AddShapeFronts(std::vector<FrontCase>& all) {
  const std::vector<FrontCase> cases = ShapeCases();
  all.insert(all.end(), cases.begin(), cases.end());
}

}  // namespace troupe::nn
