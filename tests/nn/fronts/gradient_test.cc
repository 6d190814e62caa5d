// Every op front against central finite differences, in f64 on the reference
// kernels: the gradient from the tape is the derivative of the forward.

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
#include "nn/ops/loss.h"
#include "tests/nn/fronts/front_case.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// Error of a central difference: step^2 f''' / 6 + eps f / step, near 1e-10.
constexpr double kStep = 1e-5;
constexpr double kTolerance = 1e-8;

struct NoSink : GradientSink {
  void GradientComplete(Parameter&) override {}
  void LastReaderDone(Parameter&) override {}
};

// How the weights of a case are passed to the op.
enum class WeightsAre { kParameters, kComputed };

class GradientTest
    : public testing::TestWithParam<std::pair<FrontCase, WeightsAre>> {
 protected:
  void SetUp() override {
    const FrontCase& c = GetParam().first;
    for (const Shape& shape : c.inputs) Append(shape);
    for (const Shape& shape : c.weights) Append(shape);
  }

  // Returns the scalar whose gradient is checked: a loss, or the sum of the
  // output weighted by fixed numbers.
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

  // Returns the gradients of all values, by the tape.
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

std::vector<std::pair<FrontCase, WeightsAre>> AllCases() {
  std::vector<std::pair<FrontCase, WeightsAre>> all;
  for (const FrontCase& c : AllFrontCases()) {
    if (!c.is_derivative) continue;
    all.emplace_back(c, WeightsAre::kParameters);
    if (!c.weights.empty()) all.emplace_back(c, WeightsAre::kComputed);
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
