// Cases of the fronts of linear layers, images, losses and those with one case.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/ops/add.h"
#include "nn/ops/cast.h"
#include "nn/ops/conv2d.h"
#include "nn/ops/dropout.h"
#include "nn/ops/embedding.h"
#include "nn/ops/flatten.h"
#include "nn/ops/linear.h"
#include "nn/ops/loss.h"
#include "nn/ops/pool2d.h"
#include "nn/ops/relu.h"
#include "tests/nn/fronts/front_case.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

Tensor Labels(Context& ctx, std::int64_t rows, std::int64_t classes) {
  std::vector<double> labels(rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    labels[i] = i % 4 == 3 ? ops::kIgnoreIndex : i * 7 % classes;
  }
  return MakeTensor({rows}, DType::kI64, labels, ctx.kernels().allocator());
}

// A small network in one op function; every kind of op, and one value used
// twice.
Tensor Network(Context& ctx, const Tensors& v) {
  Tensor y = ops::Conv2d(ctx, v[0], v[1], v[2], {3, 3, 1, 1, 1, 1});
  y = ops::Add(ctx, ops::Relu(ctx, y), y);
  y = ops::MaxPool2d(ctx, y, {2, 2, 2, 2});
  y = ops::Flatten(ctx, ops::AvgPool2d(ctx, y, {2, 1, 1, 1}));
  y = ops::Linear(ctx, y, v[3], v[4]);
  return ops::SoftmaxCrossEntropy(ctx, y, Labels(ctx, y.dim(0), y.dim(1)));
}

std::vector<FrontCase> LinearCases() {
  return {
      {"linear",
       {{4, 3}},
       {{5, 3}, {5}},
       [](Context& ctx, const Tensors& v) {
         return ops::Linear(ctx, v[0], v[1], v[2]);
       }},
      {"linear_no_bias",
       {{4, 3}},
       {{5, 3}},
       [](Context& ctx, const Tensors& v) {
         return ops::Linear(ctx, v[0], v[1], Tensor());
       }},
      {"linear_of_a_vector",
       {{3}},
       {{5, 3}, {5}},
       [](Context& ctx, const Tensors& v) {
         return ops::Linear(ctx, v[0], v[1], v[2]);
       }},
      {"linear_of_rank_4",
       {{2, 3, 1, 3}},
       {{5, 3}, {5}},
       [](Context& ctx, const Tensors& v) {
         return ops::Linear(ctx, v[0], v[1], v[2]);
       }},
      {"linear_shared_weight",
       {{4, 3}},
       {{3, 3}, {3}},
       [](Context& ctx, const Tensors& v) {
         return ops::Linear(ctx, ops::Linear(ctx, v[0], v[1], v[2]), v[1],
                            v[2]);
       }},
      {"network", {{4, 4, 6, 2}}, {{3, 2, 3, 3}, {3}, {5, 9}, {5}}, Network},
  };
}

FrontCase Conv(const std::string& name, const Shape& x, std::int64_t O,
               const Window2d& win) {
  return {"conv2d_" + name,
          {x},
          {{O, x[3], win.kernel_h, win.kernel_w}, {O}},
          [win](Context& ctx, const Tensors& v) {
            return ops::Conv2d(ctx, v[0], v[1], v[2], win);
          }};
}

FrontCase Pool(const std::string& name, const Shape& x, const Window2d& win,
               bool max) {
  return {absl::StrCat(max ? "max" : "avg", "_pool2d_", name),
          {x},
          {},
          [win, max](Context& ctx, const Tensors& v) {
            return max ? ops::MaxPool2d(ctx, v[0], win)
                       : ops::AvgPool2d(ctx, v[0], win);
          }};
}

std::vector<FrontCase> ImageCases() {
  std::vector<FrontCase> cases = {
      Conv("plain", {2, 5, 6, 3}, 4, {3, 3}),
      Conv("same", {1, 4, 5, 2}, 3, {3, 3, 1, 1, 1, 1}),
      Conv("uneven", {2, 7, 8, 2}, 3, {3, 2, 2, 3, 1, 0}),
      {"flatten",
       {{2, 3, 4, 5}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Flatten(ctx, v[0]); }},
      {"flatten_one_channel",
       {{2, 3, 4, 1}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Flatten(ctx, v[0]); }},
  };
  for (bool max : {true, false}) {
    cases.push_back(Pool("2x2", {2, 6, 4, 3}, {2, 2, 2, 2}, max));
    cases.push_back(Pool("overlap", {2, 7, 6, 3}, {3, 3, 2, 2, 1, 1}, max));
    cases.push_back(Pool("leftover", {1, 5, 5, 2}, {2, 2, 2, 2}, max));
  }
  return cases;
}

Tensor MseToDraws(Context& ctx, const Tensor& x) {
  const Tensor target =
      MakeTensor(x.shape(), x.dtype(), NormalDraws("mse target", x.numel()),
                 ctx.kernels().allocator());
  return ops::MeanSquaredError(ctx, x, target);
}

std::vector<FrontCase> LossCases() {
  return {
      {"cross_entropy",
       {{9, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::SoftmaxCrossEntropy(ctx, v[0], Labels(ctx, 9, 5));
       }},
      {"cross_entropy_of_rank_3",
       {{3, 3, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::SoftmaxCrossEntropy(ctx, v[0],
                                         Labels(ctx, 9, 5).View({3, 3}));
       }},
      {"mse",
       {{4, 3}},
       {},
       [](Context& ctx, const Tensors& v) { return MseToDraws(ctx, v[0]); }},
      {"scaled_loss",
       {{4, 3}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::ScaleLoss(
             ctx, ops::ScaleLoss(ctx, MseToDraws(ctx, v[0]), 0.3), -2);
       }},
      {"added_losses",
       {{4, 3}, {4, 3}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::AddLosses(ctx, MseToDraws(ctx, v[0]),
                               ops::ScaleLoss(ctx, MseToDraws(ctx, v[1]), 0.7));
       }},
      {"loss_used_three_times",
       {{4, 3}},
       {},
       [](Context& ctx, const Tensors& v) {
         const Tensor loss = MseToDraws(ctx, v[0]);
         const Tensor twice = ops::AddLosses(ctx, loss, loss);
         return ops::AddLosses(ctx, ops::ScaleLoss(ctx, loss, 0.5), twice);
       }},
  };
}

std::vector<FrontCase> OtherCases() {
  return {
      {"relu",
       {{30}},
       {},
       [](Context& ctx, const Tensors& v) { return ops::Relu(ctx, v[0]); }},
      {"add",
       {{3, 4}, {3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Add(ctx, v[0], v[1]);
       }},
      {"embedding",
       {},
       {{5, 3}},
       [](Context& ctx, const Tensors& v) {
         const Tensor rows = MakeTensor({2, 3}, DType::kI64, {4, 0, 4, 1, 1, 4},
                                        ctx.kernels().allocator());
         return ops::Embedding(ctx, rows, v[0]);
       }},
      {"dropout",
       {{4, 3, 5}},
       {},
       [](Context& ctx, const Tensors& v) {
         ctx.set_random({/*seed=*/1, /*step=*/2, /*sample=*/3});
         return ops::Dropout(ctx, v[0], 0.4);
       }},
      // Casts to f64: finite differences of a rounded cast would be steps.
      {"cast_to_itself",
       {{3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Cast(ctx, ops::Add(ctx, v[0], v[0]), DType::kF64);
       }},
      {"add_twice",
       {{3, 4}},
       {},
       [](Context& ctx, const Tensors& v) {
         return ops::Add(ctx, v[0], ops::Add(ctx, v[0], v[0]));
       }},
  };
}

}  // namespace

void AddBasicFronts(std::vector<FrontCase>& all) {
  for (const auto& cases :
       {LinearCases(), ImageCases(), LossCases(), OtherCases()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
}

}  // namespace troupe::nn
