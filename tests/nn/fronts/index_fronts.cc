// Cases of orders, masks, indices, cumulative sums, grids and named axes.

#include <cstdint>
#include <vector>

#include "nn/autograd/create.h"
#include "nn/autograd/var_math.h"
#include "nn/ops/add.h"
#include "nn/ops/arithmetic.h"
#include "nn/ops/compare.h"
#include "nn/ops/cumsum.h"
#include "nn/ops/einsum.h"
#include "nn/ops/expand.h"
#include "nn/ops/gather.h"
#include "nn/ops/sort.h"
#include "nn/ops/where.h"
#include "tests/nn/fronts/front_case.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// Returns zeros with the gradient of x.
Tensor ZerosOfThe(Context& ctx, const Tensor& x) {
  return ops::Sub(ctx, x, x.Detached());
}

// Returns indices below `count`, some of them several times.
Tensor Places(Context& ctx, const Shape& shape, std::int64_t count) {
  std::vector<double> values(shape.numel());
  for (std::int64_t i = 0; i < shape.numel(); ++i) values[i] = i * i % count;
  return MakeTensor(shape, DType::kI64, values, ctx.kernels().allocator());
}

Var MaskedBySigns(const Var& x) {
  const Var signs = x.Detached().Slice(0, 1).Slice(0, 1, /*axis=*/2) < 0;
  return MaskedFill(x, signs, -5);
}

Var MasksAsNumbers(const Var& x, const Var& y) {
  return x * (x != y) + y * (x < y) + (0 == x - x.Detached());
}

Tensor GridProduct(Context& ctx, const Tensors& v, ops::GridIndexing indexing) {
  const std::vector<Tensor> grids = ops::Meshgrid(ctx, v, indexing);
  Tensor product = grids[0];
  for (std::size_t i = 1; i < grids.size(); ++i) {
    product = ops::Mul(ctx, product, grids[i]);
  }
  return product;
}

}  // namespace

void AddIndexFronts(std::vector<FrontCase>& all) {
  const std::vector<FrontCase> cases = {
      {"sort_rows",
       {{4, 9}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Sort(ctx, v[0]).values;
       }},
      {"sort_columns_down",
       {{2, 7, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Sort(ctx, v[0], 1, true).values;
       }},
      {"sort_ties",
       {{2, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Sort(ctx, ZerosOfThe(ctx, v[0]), 1, true).values;
       },
       /*is_derivative=*/false},
      {"topk",
       {{4, 9}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::TopK(ctx, v[0], 3).values;
       }},
      {"topk_smallest",
       {{7, 2}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::TopK(ctx, v[0], 2, 0, false).values;
       }},
      {"where_masks",
       {{3, 4}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Where(ctx, ops::Greater(ctx, v[0], v[1]), v[0], v[1]);
       }},
      {"where_broadcast",
       {{3, 1}, {1, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Where(
             ctx,
             ops::GreaterEqual(
                 ctx, ops::Add(ctx, v[0].Detached(), v[1].Detached()), 0),
             v[0], v[1]);
       }},
      {"where_number",
       {{3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Where(ctx, ops::LessEqual(ctx, v[0], 0.25), 2, v[0]);
       }},
      {"masked_fill",
       {{2, 3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return MaskedBySigns(Var(ctx, v[0]));
       }},
      {"masks_as_numbers",
       {{3, 4}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return MasksAsNumbers(Var(ctx, v[0]), Var(ctx, v[1]));
       }},
      {"gather_columns",
       {{5, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Gather(ctx, v[0], 1, Places(ctx, {5, 1}, 4));
       }},
      {"gather_more",
       {{3, 4, 2}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Gather(ctx, v[0], 1, Places(ctx, {3, 6, 2}, 4));
       }},
      {"gather_fewer_rows",
       {{5, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Gather(ctx, v[0], 0, Places(ctx, {7, 3}, 5));
       }},
      {"index_select",
       {{4, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::IndexSelect(ctx, v[0], 0, Places(ctx, {7}, 4));
       }},
      {"index_select_behind",
       {{2, 4, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::IndexSelect(ctx, v[0], -1, Places(ctx, {5}, 3));
       }},
      {"scatter_add",
       {{4, 3}, {6, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::ScatterAdd(ctx, v[0], 0, Places(ctx, {6, 3}, 4), v[1]);
       }},
      {"index_add",
       {{2, 4, 3}, {2, 6, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::IndexAdd(ctx, v[0], 1, Places(ctx, {6}, 4), v[1]);
       }},
      {"cumsum_rows",
       {{3, 7}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Cumsum(ctx, v[0], -1);
       }},
      {"cumsum_columns",
       {{2, 5, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Cumsum(ctx, v[0], 1);
       }},
      {"meshgrid",
       {{3}, {4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return GridProduct(ctx, v, ops::GridIndexing::kIJ);
       }},
      {"meshgrid_xy",
       {{3}, {4}, {2}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return GridProduct(ctx, v, ops::GridIndexing::kXY);
       }},
      {"einsum_matmul",
       {{3, 4}, {4, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "ik,kj->ij", v);
       }},
      {"einsum_attention",
       {{2, 3, 2, 4}, {2, 5, 2, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "bqhd,bkhd->bhqk", v);
       }},
      {"einsum_transposed",
       {{2, 4, 3}, {2, 5, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "bki,bjk->bij", v);
       }},
      {"einsum_result_order",
       {{2, 3, 4}, {4, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "bik,kj->jib", v);
       }},
      {"einsum_sums_on_both_sides",
       {{2, 4, 3}, {4, 5}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "iks,kt->i", v);
       }},
      {"einsum_outer",
       {{3}, {4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "i,j->ji", v);
       }},
      {"einsum_elements",
       {{3, 4}, {4, 3}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "ij,ji->ij", v);
       }},
      {"einsum_scalar",
       {{3, 4}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "ij, ij ->", v);
       }},
      {"einsum_one_permuted",
       {{2, 3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "nhc->cnh", v);
       }},
      {"einsum_one_summed",
       {{2, 3, 4}},
       {},
       [](Context& ctx, const Tensors& v) -> Tensor {
         return ops::Einsum(ctx, "nhc->cn", v);
       }},
  };
  all.insert(all.end(), cases.begin(), cases.end());
}

}  // namespace troupe::nn
