// Cases of the losses' options, and of the losses of pairs.

#include <functional>
#include <string>
#include <vector>

#include "nn/ops/add.h"
#include "nn/ops/loss.h"
#include "tests/nn/fronts/front_case.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

Tensor SomeIgnored(Context& ctx, const Tensor& logits) {
  const int last = logits.shape().rank() - 1;
  const std::int64_t classes = logits.dim(last);
  std::vector<double> labels(logits.numel() / classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] =
        i % 4 == 3 ? ops::kIgnoreIndex : static_cast<double>(i * 7 % classes);
  }
  return MakeTensor(Shape(logits.shape().dims().first(last)), DType::kI64,
                    labels, ctx.kernels().allocator());
}

FrontCase CrossEntropyCase(const std::string& name, const Shape& shape,
                           bool weighted, double smoothing) {
  return {
      name, {shape}, {}, [=](Context& ctx, const Tensors& v) {
        ops::CrossEntropyOptions options;
        options.label_smoothing = smoothing;
        const std::int64_t classes = shape[shape.rank() - 1];
        for (std::int64_t c = 0; weighted && c < classes; ++c) {
          options.class_weights.push_back(0.25f * static_cast<float>(1 + c));
        }
        return ops::SoftmaxCrossEntropy(ctx, v[0], SomeIgnored(ctx, v[0]),
                                        options);
      }};
}

using PairLoss = std::function<Tensor(Context&, const Tensor&, const Tensor&)>;

// Returns a case of a loss of pairs whose targets are all `target`.
FrontCase PairsCase(const std::string& name, const Shape& shape, double target,
                    PairLoss loss) {
  return {name, {shape}, {}, [=](Context& ctx, const Tensors& v) {
            const std::vector<double> targets(v[0].numel(), target);
            return loss(ctx, v[0],
                        MakeTensor(shape, v[0].dtype(), targets,
                                   ctx.kernels().allocator()));
          }};
}

FrontCase BceCase(const std::string& name, double pos_weight) {
  return {name, {{4, 5}}, {}, [=](Context& ctx, const Tensors& v) {
            std::vector<double> targets(v[0].numel());
            for (std::size_t i = 0; i < targets.size(); ++i) {
              targets[i] = static_cast<double>(i % 5) / 4;
            }
            Tensor x = v[0];
            for (int twice = 0; twice < 3; ++twice) x = ops::Add(ctx, x, x);
            return ops::BceWithLogits(ctx, x,
                                      MakeTensor({4, 5}, x.dtype(), targets,
                                                 ctx.kernels().allocator()),
                                      pos_weight);
          }};
}

}  // namespace

void AddLossFronts(std::vector<FrontCase>& all) {
  all.push_back(CrossEntropyCase("cross_entropy_smoothed", {9, 5}, false, 0.1));
  all.push_back(CrossEntropyCase("cross_entropy_weighted", {9, 5}, true, 0));
  all.push_back(CrossEntropyCase("cross_entropy_weighted_and_smoothed",
                                 {3, 4, 7}, true, 0.3));
  all.push_back(
      CrossEntropyCase("cross_entropy_all_smoothed", {9, 5}, false, 1));
  all.push_back(PairsCase("l1_loss", {4, 3}, 0.3, ops::L1Loss));
  all.push_back(PairsCase("huber_loss", {4, 5}, 0.1,
                          [](Context& ctx, const Tensor& x, const Tensor& t) {
                            return ops::HuberLoss(ctx, x, t, /*delta=*/0.4);
                          }));
  for (const double beta : {0.4, 0.0}) {
    all.push_back(
        PairsCase(beta > 0 ? "smooth_l1_loss" : "smooth_l1_loss_without_beta",
                  beta > 0 ? Shape{4, 5} : Shape{4, 3}, beta > 0 ? 0.1 : 0.3,
                  [beta](Context& ctx, const Tensor& x, const Tensor& t) {
                    return ops::SmoothL1Loss(ctx, x, t, beta);
                  }));
  }
  all.push_back(BceCase("bce_with_logits", 1));
  all.push_back(BceCase("bce_with_logits_weighted", 3));
}

}  // namespace troupe::nn
