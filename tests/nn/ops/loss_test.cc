// The memory into which cross entropy writes its gradient; targets with a
// gradient; class weights.

#include "nn/ops/loss.h"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/ops/activation.h"
#include "nn/ops/linear.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

class CrossEntropyMemoryTest : public testing::Test {
 protected:
  struct NoSink : GradientSink {
    void GradientComplete(Parameter&) override {}
    void LastReaderDone(Parameter&) override {}
  };

  Tensor Draws(const char* name, const Shape& shape) {
    return MakeTensor(shape, DType::kF32, NormalDraws(name, shape.numel()),
                      kernels_->allocator());
  }
  Tensor LogitsOf(Context& ctx, const Tensor& x) {
    return ops::Linear(ctx, x, w_, Tensor());
  }
  std::vector<double> InputGradient(Tape& tape, const Tensor& x,
                                    const Tensor& loss) {
    NoSink sink;
    BackwardPass pass(tape, *kernels_, sink, BackwardPass::Mode::kWhole);
    pass.Seed(loss);
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = pass.Next();
    EXPECT_TRUE(more.ok()) << more.status();
    return ValuesOf(tape.InputGrad(x));
  }
  // Returns the bytes that a loss holds after its forward: its statistics, and
  // its gradient.
  template <typename Loss>
  std::int64_t GrowthOf(Loss loss) {
    Tape tape;
    Context ctx(*kernels_, &tape);
    const Tensor x = tape.Watch(x_);
    Tensor logits = LogitsOf(ctx, x);
    const auto before = kernels_->allocator().stats().bytes_in_use;
    const Tensor stats = loss(ctx, std::move(logits));
    const auto after = kernels_->allocator().stats().bytes_in_use;
    EXPECT_EQ(InputGradient(tape, x, stats), Wanted());
    return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
  }
  // Returns the gradient computed from logits that are kept.
  std::vector<double> Wanted() {
    Tape tape;
    Context ctx(*kernels_, &tape);
    const Tensor x = tape.Watch(x_);
    const Tensor logits = LogitsOf(ctx, x);
    const std::vector<double> values = ValuesOf(logits);
    const Tensor stats = ops::SoftmaxCrossEntropy(ctx, logits, labels_);
    EXPECT_EQ(ValuesOf(logits), values);
    return InputGradient(tape, x, stats);
  }

  static constexpr std::int64_t kRows = 64, kClasses = 128;
  static constexpr std::int64_t kLogitsBytes = kRows * kClasses * 4;
  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
  const Tensor x_ = Draws("x", {kRows, 8});
  const Tensor w_ = Draws("w", {kClasses, 8});
  const Tensor labels_ =
      Tensor::Zeros({kRows}, DType::kI64, kernels_->allocator());
};

TEST_F(CrossEntropyMemoryTest, LogitsThatNobodyKeepsBecomeTheGradient) {
  EXPECT_LT(GrowthOf([&](Context& ctx, Tensor logits) {
              return ops::SoftmaxCrossEntropy(ctx, std::move(logits), labels_);
            }),
            kLogitsBytes);
  const ops::LossFn loss = ops::CrossEntropyLoss();
  EXPECT_LT(GrowthOf([&](Context& ctx, Tensor logits) {
              return loss(ctx, std::move(logits), labels_);
            }),
            kLogitsBytes);
}

TEST_F(CrossEntropyMemoryTest, AKeptHandleKeepsTheLogits) {
  const ops::LossFn loss = ops::CrossEntropyLoss();
  EXPECT_GE(GrowthOf([&](Context& ctx, const Tensor& logits) {
              const std::vector<double> values = ValuesOf(logits);
              const Tensor stats = loss(ctx, logits, labels_);
              EXPECT_EQ(ValuesOf(logits), values);
              return stats;
            }),
            kLogitsBytes);
}

// A tanh needs its output for backward.
TEST_F(CrossEntropyMemoryTest, AnOpThatKeepsItsOutputKeepsTheLogits) {
  const auto gradient = [&](bool keeps) {
    Tape tape;
    Context ctx(*kernels_, &tape);
    const Tensor x = tape.Watch(x_);
    Tensor logits = ops::Tanh(ctx, LogitsOf(ctx, x));
    const Tensor kept = keeps ? logits : Tensor();
    const Tensor stats =
        ops::SoftmaxCrossEntropy(ctx, std::move(logits), labels_);
    return InputGradient(tape, x, stats);
  };
  EXPECT_EQ(gradient(false), gradient(true));
}

// Losses with a gradient of their target, too, or that refuse such a target.
class TrackedTargetTest : public testing::Test {
 protected:
  struct NoSink : GradientSink {
    void GradientComplete(Parameter&) override {}
    void LastReaderDone(Parameter&) override {}
  };
  using PairLoss =
      std::function<Tensor(Context&, const Tensor& x, const Tensor& t)>;

  Tensor Draws(const char* name) {
    return MakeTensor({3, 5}, DType::kF64, NormalDraws(name, 15),
                      kernels_->allocator());
  }
  // Returns the gradients of x and of t; empty for those that are not tracked.
  std::pair<std::vector<double>, std::vector<double>> Gradients(
      const PairLoss& loss, bool tracks_x, bool tracks_t) {
    Tape tape;
    Context ctx(*kernels_, &tape);
    const Tensor x = tracks_x ? tape.Watch(Draws("x")) : Draws("x");
    const Tensor t = tracks_t ? tape.Watch(Draws("t")) : Draws("t");
    const Tensor stats = ops::ScaleLoss(ctx, loss(ctx, x, t), 0.5);
    EXPECT_TRUE(ctx.ok()) << ctx.status();
    NoSink sink;
    BackwardPass pass(tape, *kernels_, sink, BackwardPass::Mode::kWhole);
    pass.Seed(stats);
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = pass.Next();
    EXPECT_TRUE(more.ok()) << more.status();
    return {tracks_x ? ValuesOf(tape.InputGrad(x)) : std::vector<double>(),
            tracks_t ? ValuesOf(tape.InputGrad(t)) : std::vector<double>()};
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
  const std::pair<const char*, PairLoss> differences_[5] = {
      {"mse", ops::MeanSquaredError},
      {"l1_loss", ops::L1Loss},
      {"huber_loss",
       [](Context& ctx, const Tensor& x, const Tensor& t) {
         return ops::HuberLoss(ctx, x, t, 0.7);
       }},
      {"smooth_l1_loss",
       [](Context& ctx, const Tensor& x, const Tensor& t) {
         return ops::SmoothL1Loss(ctx, x, t, 0.3);
       }},
      {"smooth_l1_loss of beta 0",
       [](Context& ctx, const Tensor& x, const Tensor& t) {
         return ops::SmoothL1Loss(ctx, x, t, 0);
       }},
  };
};

TEST_F(TrackedTargetTest, GetsTheGradientOfThePredictionNegated) {
  for (const auto& [name, loss] : differences_) {
    SCOPED_TRACE(name);
    const std::vector<double> want = Gradients(loss, true, false).first;
    ASSERT_EQ(want.size(), 15u);
    std::vector<double> negated = want;
    for (double& value : negated) value = -value;
    const auto both = Gradients(loss, true, true);
    EXPECT_EQ(both.first, want);
    EXPECT_EQ(both.second, negated);
    EXPECT_EQ(Gradients(loss, false, true).second, negated);
  }
}

TEST_F(TrackedTargetTest, OfTheSameTensorCancels) {
  Tape tape;
  Context ctx(*kernels_, &tape);
  const Tensor x = tape.Watch(Draws("x"));
  const Tensor stats =
      ops::MeanSquaredError(ctx, ops::Tanh(ctx, x), ops::Tanh(ctx, x));
  ASSERT_TRUE(ctx.ok()) << ctx.status();
  NoSink sink;
  BackwardPass pass(tape, *kernels_, sink, BackwardPass::Mode::kWhole);
  pass.Seed(stats);
  absl::StatusOr<bool> more = true;
  while (more.ok() && *more) more = pass.Next();
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(ValuesOf(tape.InputGrad(x)), std::vector<double>(15, 0.0));
}

TEST_F(TrackedTargetTest, IsRefusedByName) {
  for (const double pos_weight : {1.0, 3.0}) {
    Tape tape;
    Context ctx(*kernels_, &tape);
    const Tensor x = Draws("x"), t = tape.Watch(Draws("t"));
    EXPECT_FALSE(ops::BceWithLogits(ctx, x, t, pos_weight).defined());
    EXPECT_EQ(ctx.status(), absl::InvalidArgumentError(
                                "bce_with_logits has no gradient for its "
                                "target f64[3, 5], which is tracked: pass "
                                "target.Detached()"));
  }
  Tape tape;
  Context ctx(*kernels_, &tape);
  const Tensor x = tape.Watch(Draws("x")), t = tape.Watch(Draws("t"));
  EXPECT_TRUE(ops::BceWithLogits(ctx, x, t.Detached()).defined());
}

// The count of a cross entropy is a sum of class weights.
TEST(ClassWeights, HaveTheDigitsOfTheLogits) {
  const auto kernels = CreateReferenceKernels();
  ops::CrossEntropyOptions options;
  options.class_weights = {0.1, 0.7};
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kBF16}) {
    Context ctx(*kernels);
    const Tensor logits =
        MakeTensor({1, 2}, dtype, {0, 0}, kernels->allocator());
    const Tensor labels = Tensor::Zeros({1}, DType::kI64, kernels->allocator());
    const Tensor stats = ops::SoftmaxCrossEntropy(ctx, logits, labels, options);
    ASSERT_TRUE(ctx.ok()) << ctx.status();
    EXPECT_EQ(ValuesOf(stats)[ops::kLossCount],
              dtype == DType::kF64 ? 0.1 : static_cast<double>(0.1f))
        << DTypeName(dtype);
  }
}

}  // namespace
}  // namespace troupe::nn
