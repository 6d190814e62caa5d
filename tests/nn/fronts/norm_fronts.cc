// Cases of layer, RMS, group and batch norm.

#include <string>
#include <utility>
#include <vector>

#include "nn/ops/arithmetic.h"
#include "nn/ops/batch_norm.h"
#include "nn/ops/norm.h"
#include "tests/nn/fronts/front_case.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

FrontCase Layer(const std::string& name, const Shape& x,
                const Shape& normalized, int weights) {
  return {"layer_norm_" + name,
          {x},
          std::vector<Shape>(static_cast<std::size_t>(weights), normalized),
          [normalized, weights](Context& ctx, const Tensors& v) {
            return ops::LayerNorm(ctx, v[0], normalized,
                                  weights > 0 ? v[1] : Tensor(),
                                  weights > 1 ? v[2] : Tensor());
          }};
}

std::vector<FrontCase> SampleNormCases() {
  return {
      Layer("affine", {4, 7}, {7}, 2),
      Layer("no_bias", {2, 3, 6}, {6}, 1),
      Layer("no_weight", {4, 7}, {7}, 0),
      Layer("two_axes", {3, 2, 5}, {2, 5}, 2),
      // Both results are used; the norm's gradient is added to the product's.
      {"add_layer_norm",
       {{4, 7}, {4, 7}},
       {{7}, {7}},
       [](Context& ctx, const Tensors& v) {
         const auto [sum, normed] =
             ops::AddLayerNorm(ctx, v[0], v[1], {7}, v[2], v[3]);
         return ops::Mul(ctx, sum, normed);
       }},
      {"add_layer_norm_broadcast",
       {{2, 3, 7}, {3, 7}},
       {{7}},
       [](Context& ctx, const Tensors& v) {
         const auto [sum, normed] =
             ops::AddLayerNorm(ctx, v[0], v[1], {7}, v[2], Tensor());
         return ops::Mul(ctx, sum, normed);
       }},
      {"add_rms_norm",
       {{2, 3, 6}, {2, 3, 6}},
       {{6}},
       [](Context& ctx, const Tensors& v) {
         const auto [sum, normed] =
             ops::AddRmsNorm(ctx, v[0], v[1], v[2], 1e-6);
         return ops::Mul(ctx, sum, normed);
       }},
      {"layer_norm_bias_alone",
       {{4, 7}},
       {{7}},
       [](Context& ctx, const Tensors& v) {
         return ops::LayerNorm(ctx, v[0], {7}, Tensor(), v[1]);
       }},
      {"rms_norm",
       {{2, 3, 6}},
       {{6}},
       [](Context& ctx, const Tensors& v) {
         return ops::RmsNorm(ctx, v[0], v[1], 1e-6);
       }},
      {"rms_norm_no_weight",
       {{4, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::RmsNorm(ctx, v[0], Tensor());
       }},
      {"group_norm_images",
       {{2, 3, 4, 6}},
       {{6}, {6}},
       [](Context& ctx, const Tensors& v) {
         return ops::GroupNorm(ctx, v[0], 3, v[1], v[2]);
       }},
      {"group_norm_one_place",
       {{5, 6}},
       {{6}, {6}},
       [](Context& ctx, const Tensors& v) {
         return ops::GroupNorm(ctx, v[0], 2, v[1], v[2]);
       }},
      {"group_norm_no_weight",
       {{2, 5, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::GroupNorm(ctx, v[0], 1, Tensor(), Tensor());
       }},
  };
}

FrontCase Batch(const std::string& name, const Shape& x, bool affine, bool relu,
                bool residual = false) {
  std::vector<Shape> inputs = {x}, weights;
  if (residual) inputs.push_back(x);
  if (affine) weights = {{x[-1]}, {x[-1]}};
  return {"batch_norm_" + name, std::move(inputs), std::move(weights),
          [=](Context& ctx, const Tensors& v) {
            ops::BatchNormOptions options;
            options.relu = relu;
            const std::size_t w = residual ? 2 : 1;
            return ops::BatchNorm(ctx, v[0], affine ? v[w] : Tensor(),
                                  affine ? v[w + 1] : Tensor(), {}, options,
                                  residual ? v[1] : Tensor());
          }};
}

// Runs an evaluation, with running statistics.
Tensor Evaluated(Context& ctx, const Tensors& v) {
  Allocator& memory = ctx.kernels().allocator();
  const ops::RunningStats running = {
      MakeTensor({3}, DType::kF64, {0.5, -0.25, 1}, memory),
      MakeTensor({3}, DType::kF64, {1, 0.5, 2}, memory),
      MakeTensor({}, DType::kI64, {1}, memory)};
  ctx.set_training(false);
  ops::BatchNormOptions options;
  options.eps = 1e-3;
  return ops::BatchNorm(ctx, v[0], v[1], v[2], running, options);
}

std::vector<FrontCase> BatchNormCases() {
  return {
      Batch("of_rows", {5, 4}, /*affine=*/true, /*relu=*/false),
      Batch("of_sequences", {3, 4, 2}, /*affine=*/true, /*relu=*/false),
      Batch("of_images", {2, 3, 2, 5}, /*affine=*/true, /*relu=*/false),
      Batch("no_weight", {6, 3}, /*affine=*/false, /*relu=*/false),
      Batch("relu", {2, 3, 2, 4}, /*affine=*/true, /*relu=*/true),
      Batch("relu_no_weight", {8, 3}, /*affine=*/false, /*relu=*/true),
      Batch("residual", {5, 4}, /*affine=*/true, /*relu=*/false,
            /*residual=*/true),
      Batch("residual_relu", {2, 3, 2, 4}, /*affine=*/true, /*relu=*/true,
            /*residual=*/true),
      {"batch_norm_evaluated", {{4, 2, 3}}, {{3}, {3}}, Evaluated},
  };
}

}  // namespace

void AddNormFronts(std::vector<FrontCase>& all) {
  for (const auto& cases : {SampleNormCases(), BatchNormCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
}

}  // namespace troupe::nn
