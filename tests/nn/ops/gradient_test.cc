// Every op front against central finite differences, in f64 on the reference
// kernels: the gradient that the tape gives is the derivative of the forward.

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/autograd/context.h"
#include "nn/kernels/reference/reference_kernels.h"
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
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// Error of a central difference: step^2 f''' / 6 + eps f / step, near 1e-10.
constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-8;

using Tensors = std::vector<Tensor>;

struct GradientCase {
  std::string name;
  std::vector<Shape> inputs;
  std::vector<Shape> weights;  // after the inputs in `forward`'s list
  std::function<Tensor(Context&, const Tensors&)> forward;
};

struct NoSink : GradientSink {
  void GradientComplete(Parameter&) override {}
  void LastReaderDone(Parameter&) override {}
};

// How the weights of a case are given to the op.
enum class WeightsAre { kParameters, kComputed };

class GradientTest
    : public testing::TestWithParam<std::pair<GradientCase, WeightsAre>> {
 protected:
  void SetUp() override {
    const GradientCase& c = GetParam().first;
    for (const Shape& shape : c.inputs) Append(shape);
    for (const Shape& shape : c.weights) Append(shape);
  }

  // The scalar whose gradient is checked: a loss, or the sum of the output
  // weighted by fixed numbers.
  double Scalar() {
    Context ctx(*kernels_);
    const Tensor y = GetParam().first.forward(ctx, values_);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    if (IsLoss(y)) return y.data<double>()[ops::kLossSum];
    const std::vector<double> out = ValuesOf(y), dy = OutputGradient(y);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dy[i];
    return sum;
  }

  std::vector<double> NumericGradient(Tensor value) {
    std::vector<double> gradient(value.numel());
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      double& element = value.data<double>()[i];
      const double before = element;
      element = before + kStep;
      const double above = Scalar();
      element = before - kStep;
      const double below = Scalar();
      element = before;
      gradient[i] = (above - below) / (2 * kStep);
    }
    return gradient;
  }

  // Gradients of all values, by the tape.
  std::vector<Tensor> TapeGradients() {
    Tape tape;
    Context ctx(*kernels_, &tape);
    const std::size_t num_inputs = GetParam().first.inputs.size();
    std::vector<Parameter> parameters(values_.size());
    Tensors given;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const bool is_leaf =
          i >= num_inputs && GetParam().second == WeightsAre::kParameters;
      if (!is_leaf) {
        given.push_back(tape.Watch(values_[i]));
        continue;
      }
      parameters[i].value = values_[i];
      parameters[i].grad =
          MakeTensor(values_[i].shape(), DType::kF64,
                     std::vector<double>(values_[i].numel(), std::nan("")),
                     kernels_->allocator());
      given.push_back(ctx.Use(parameters[i]));
    }
    const Tensor y = GetParam().first.forward(ctx, given);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    RunBackward(tape, y);
    Tensors gradients;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      gradients.push_back(parameters[i].grad.defined()
                              ? parameters[i].grad
                              : tape.InputGrad(given[i]));
    }
    return gradients;
  }

  Tensors values_;

 private:
  void Append(const Shape& shape) {
    const std::string name =
        absl::StrCat(GetParam().first.name, "/", values_.size());
    values_.push_back(MakeTensor(shape, DType::kF64,
                                 NormalDraws(name, shape.numel()),
                                 kernels_->allocator()));
  }

  static bool IsLoss(const Tensor& y) {
    return y.shape() == Shape{ops::kNumLossStats};
  }

  static std::vector<double> OutputGradient(const Tensor& y) {
    return NormalDraws("output gradient", y.numel());
  }

  void RunBackward(Tape& tape, const Tensor& y) {
    NoSink sink;
    BackwardPass backward(tape, *kernels_, sink, BackwardPass::Mode::kWhole);
    if (IsLoss(y)) {
      backward.Seed(y);
    } else {
      backward.Seed(y, MakeTensor(y.shape(), DType::kF64, OutputGradient(y),
                                  kernels_->allocator()));
    }
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = backward.Next();
    EXPECT_TRUE(more.ok()) << more.status();
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
};

TEST_P(GradientTest, IsTheDerivative) {
  const Tensors gradients = TapeGradients();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    ASSERT_TRUE(gradients[i].defined()) << "of value " << i;
    EXPECT_TRUE(
        Near(ValuesOf(gradients[i]), NumericGradient(values_[i]), kTolerance))
        << "of value " << i;
  }
}

Tensor Labels(Context& ctx, std::int64_t rows, std::int64_t classes) {
  std::vector<double> labels(rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    labels[i] = i % 4 == 3 ? ops::kIgnoreIndex : i * 7 % classes;
  }
  return MakeTensor({rows}, DType::kI64, labels, ctx.kernels().allocator());
}

// A small network in one piece; every kind of op, and one value used twice.
Tensor Network(Context& ctx, const Tensors& v) {
  Tensor y = ops::Conv2d(ctx, v[0], v[1], v[2], {3, 3, 1, 1, 1, 1});
  y = ops::Add(ctx, ops::Relu(ctx, y), y);
  y = ops::MaxPool2d(ctx, y, {2, 2, 2, 2});
  y = ops::Flatten(ctx, ops::AvgPool2d(ctx, y, {2, 1, 1, 1}));
  y = ops::Linear(ctx, y, v[3], v[4]);
  return ops::SoftmaxCrossEntropy(ctx, y, Labels(ctx, y.dim(0), y.dim(1)));
}

std::vector<GradientCase> LinearCases() {
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

GradientCase Conv(const std::string& name, const Shape& x, std::int64_t O,
                  const Window2d& win) {
  return {"conv2d_" + name,
          {x},
          {{O, x[3], win.kernel_h, win.kernel_w}, {O}},
          [win](Context& ctx, const Tensors& v) {
            return ops::Conv2d(ctx, v[0], v[1], v[2], win);
          }};
}

GradientCase Pool(const std::string& name, const Shape& x, const Window2d& win,
                  bool max) {
  return {absl::StrCat(max ? "max" : "avg", "_pool2d_", name),
          {x},
          {},
          [win, max](Context& ctx, const Tensors& v) {
            return max ? ops::MaxPool2d(ctx, v[0], win)
                       : ops::AvgPool2d(ctx, v[0], win);
          }};
}

std::vector<GradientCase> ImageCases() {
  std::vector<GradientCase> cases = {
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
      MakeTensor(x.shape(), DType::kF64, NormalDraws("mse target", x.numel()),
                 ctx.kernels().allocator());
  return ops::MeanSquaredError(ctx, x, target);
}

std::vector<GradientCase> LossCases() {
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

std::vector<GradientCase> OtherCases() {
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
      // The values of f32 that are there: differences of a rounding are steps.
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

std::vector<std::pair<GradientCase, WeightsAre>> AllCases() {
  std::vector<std::pair<GradientCase, WeightsAre>> all;
  for (const auto& cases :
       {LinearCases(), ImageCases(), LossCases(), OtherCases()}) {
    for (const GradientCase& c : cases) {
      all.emplace_back(c, WeightsAre::kParameters);
      if (!c.weights.empty()) all.emplace_back(c, WeightsAre::kComputed);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ops, GradientTest, testing::ValuesIn(AllCases()),
                         [](const auto& info) {
                           const bool computed =
                               info.param.second == WeightsAre::kComputed;
                           return info.param.first.name +
                                  (computed ? "_computed_weights" : "");
                         });

}  // namespace
}  // namespace troupe::nn
