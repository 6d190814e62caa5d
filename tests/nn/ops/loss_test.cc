// The memory into which cross entropy writes its gradient.

#include "nn/ops/loss.h"

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

}  // namespace
}  // namespace troupe::nn
