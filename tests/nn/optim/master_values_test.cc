// 16-bit parameters with f32 master values, or rounded at random; f32
// gradients; skipped steps.

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/linear.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/nn/testing/host_scalars.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

struct NoSink : GradientSink {
  void GradientComplete(Parameter&) override {}
  void LastReaderDone(Parameter&) override {}
};

class MasterValuesTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    kernels_ = GetParam() ? CreateCpuKernels({}) : CreateReferenceKernels();
    parameter_.name = "w";
    parameter_.shape = {21};
    parameter_.dtype = DType::kBF16;
    parameter_.init = Initializer::Constant(1);
  }

  // Sets a size of the parameter for later calls of Make().
  void Resize(std::int64_t size) { parameter_.shape = {size}; }

  void Make(const SgdOptions& options,
            std::optional<DType> grad_dtype = DType::kF32) {
    ParameterArena::Options arena;
    arena.grad_dtype = grad_dtype;
    arena_ =
        *ParameterArena::Create({{&parameter_}}, arena, kernels_->allocator());
    EXPECT_TRUE(arena_->Initialize(1).ok());
    sgd_ = std::make_unique<Sgd>(options);
    EXPECT_TRUE(sgd_->Attach(*arena_).ok());
    ASSERT_TRUE(sgd_->Begin(*kernels_, *arena_).ok());
  }

  void Step(std::int64_t step, double gradient) {
    ASSERT_TRUE(kernels_->Fill(gradient, parameter_.grad).ok());
    Scalars(step);
    ASSERT_TRUE(sgd_->Update(*kernels_, scalars_, *arena_, 0).ok());
  }

  void Scalars(std::int64_t step) {
    scalars_ = ScalarsFor(*sgd_, step, /*loss_count=*/1, kernels_->allocator());
  }

  std::unique_ptr<Kernels> kernels_;
  Parameter parameter_;
  std::unique_ptr<ParameterArena> arena_;
  std::unique_ptr<Sgd> sgd_;
  Tensor scalars_;
};

// Each update is a 16th of the last place of 1: lost without master values.
TEST_P(MasterValuesTest, SmallUpdatesAddUp) {
  for (const bool master : {false, true}) {
    SgdOptions options;
    options.lr = 0x1p-12;
    options.common.f32_master = master;
    Make(options);
    for (int step = 0; step < 64; ++step) Step(step, /*gradient=*/1);
    EXPECT_EQ(ValuesOf(parameter_.value),
              std::vector<double>(21, master ? 1 - 64 * 0x1p-12 : 1.0));
    EXPECT_EQ(arena_->states().size(), master ? 1u : 0u);
  }
}

// Each update is a 16th of the distance between neighbours in bf16 below 1.
TEST_P(MasterValuesTest, UpdatesRoundedAtRandomAddUpOnAverage) {
  constexpr std::int64_t kElems = 4096;
  constexpr double kUnit = 0x1p-8;
  SgdOptions options;
  options.lr = kUnit / 16;
  options.common.stochastic_rounding = true;
  Resize(kElems);
  std::vector<std::vector<double>> runs;
  for (const std::uint64_t seed : {1, 1, 2}) {
    options.common.rounding_seed = seed;
    Make(options);
    for (int step = 0; step < 64; ++step) Step(step, /*gradient=*/1);
    runs.push_back(ValuesOf(parameter_.value));
    EXPECT_TRUE(arena_->states().empty());
    double sum = 0, squares = 0;
    for (double value : runs.back()) {
      const double units = (1 - value) / kUnit;
      sum += units;
      squares += units * units;
    }
    // 64 draws of probability 1 / 16: mean 4, variance 3.75. An element's mean
    // is within 6 standard errors.
    const double mean = sum / kElems;
    EXPECT_NEAR(mean, 4, 6 * std::sqrt(3.75 / kElems));
    EXPECT_NEAR(squares / kElems - mean * mean, 3.75, 0.6);
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST_P(MasterValuesTest, WhatBf16HasIsNotRounded) {
  SgdOptions options;
  options.lr = 0;
  options.common.stochastic_rounding = true;
  Make(options);
  Step(0, 1);
  EXPECT_EQ(ValuesOf(parameter_.value), std::vector<double>(21, 1.0));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Tensor values =
      MakeTensor({5}, DType::kF32, {kInfinity, -kInfinity, -0.0, 1.5, NAN},
                 kernels_->allocator());
  Tensor rounded =
      Tensor::Empty(values.shape(), DType::kBF16, kernels_->allocator());
  const RoundingDraws draws = {RandomKey(3, Purpose::kRounding)};
  ASSERT_TRUE(kernels_->RoundAtRandom(draws, scalars_, values, rounded).ok());
  std::vector<double> after = ValuesOf(rounded);
  EXPECT_TRUE(std::isnan(after.back()));
  after.pop_back();
  EXPECT_EQ(after, (std::vector<double>{kInfinity, -kInfinity, -0.0, 1.5}));
}

TEST_P(MasterValuesTest, RoundingAtRandomIsRefusedWhereItHasNoMeaning) {
  OptimizerOptions both;
  both.f32_master = both.stochastic_rounding = true;
  EXPECT_EQ(both.Validate().message(),
            "OptimizerOptions.f32_master and "
            "OptimizerOptions.stochastic_rounding are both set, and with f32 "
            "values nothing is rounded at random; remove one");
  parameter_.dtype = DType::kF16;
  SgdOptions options;
  options.common.stochastic_rounding = true;
  const auto arena =
      *ParameterArena::Create({{&parameter_}}, {}, kernels_->allocator());
  EXPECT_EQ(Sgd(options).Attach(*arena).message(),
            "OptimizerOptions.stochastic_rounding: parameters are f16, and "
            "only bf16 is rounded at random; take bf16, or f32_master");
}

TEST_P(MasterValuesTest, MomentumIsF32Too) {
  SgdOptions options;
  options.lr = 0x1p-12;
  options.momentum = 0.5;
  options.common.f32_master = true;
  Make(options);
  Step(0, 1);
  Step(1, 1);  // the buffer is 1, then 1.5
  ASSERT_EQ(arena_->states().size(), 2u);
  EXPECT_EQ(arena_->states()[0].first, "master_value");
  EXPECT_EQ(arena_->states()[1].second.dtype(), DType::kF32);
  const Tensor master =
      arena_->View(arena_->states()[0].second, arena_->slots()[0]);
  EXPECT_EQ(ValuesOf(master), std::vector<double>(21, 1 - 2.5 * 0x1p-12));
}

TEST_P(MasterValuesTest, GradientsMayBeNarrowAndMasterValuesWideAlready) {
  SgdOptions options;
  options.lr = 0x1p-12;
  options.common.f32_master = true;
  Make(options, /*grad_dtype=*/std::nullopt);
  EXPECT_EQ(parameter_.grad.dtype(), DType::kBF16);
  for (int step = 0; step < 64; ++step) Step(step, 1);
  EXPECT_EQ(ValuesOf(parameter_.value),
            std::vector<double>(21, 1 - 64 * 0x1p-12));
  parameter_.dtype = DType::kF32;
  Make(options, std::nullopt);
  EXPECT_TRUE(arena_->states().empty()) << "f32 needs no copy";
}

TEST_P(MasterValuesTest, AStepWithAGradientThatIsNotFiniteIsRefused) {
  SgdOptions options;
  options.common.skip_nonfinite = true;
  Make(options);
  EXPECT_TRUE(sgd_->NeedsAllBuckets());
  ASSERT_TRUE(kernels_->Fill(1, parameter_.grad).ok());
  Scalars(0);
  ASSERT_TRUE(sgd_->Inspect(*kernels_, scalars_, *arena_).ok());
  EXPECT_EQ(ScalarsIn(scalars_).non_finite, 0);
  const std::vector<double> before = ValuesOf(parameter_.value);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Scalars(0);
    parameter_.grad.data<float>()[20] = bad;
    ASSERT_TRUE(sgd_->Inspect(*kernels_, scalars_, *arena_).ok());
    EXPECT_EQ(ScalarsIn(scalars_).non_finite, 1);
    ASSERT_TRUE(sgd_->Update(*kernels_, scalars_, *arena_, 0).ok());
    EXPECT_EQ(ValuesOf(parameter_.value), before);
  }
  Scalars(0);
  options.common.skip_nonfinite = false;
  ASSERT_TRUE(Sgd(options).Inspect(*kernels_, scalars_, *arena_).ok());
  EXPECT_EQ(ScalarsIn(scalars_).non_finite, 0);
}

// A bf16 layer whose gradients are f32: the sum over micro-batches loses
// nothing, and each of its terms equals the bf16 gradient.
TEST_P(MasterValuesTest, GradientsOfAnotherDTypeAddUpInIt) {
  Linear layer(3, 2, {/*bias=*/true, DType::kBF16});
  const std::vector<Parameter*> all = layer.Parameters();
  const auto gradients = [&](std::optional<DType> dtype, int from, int to) {
    ParameterArena::Options options;
    options.grad_dtype = dtype;
    const auto arena =
        *ParameterArena::Create({all}, options, kernels_->allocator());
    EXPECT_TRUE(arena->Initialize(1).ok());
    arena->BeginStep();
    for (int m = from; m < to; ++m) {
      Tape tape;
      Context ctx(*kernels_, &tape);
      const Tensor x =
          MakeTensor({4, 3}, DType::kBF16, NormalDraws(std::to_string(m), 12),
                     kernels_->allocator());
      const Tensor y = layer(ctx, x);
      const Tensor loss = ops::MeanSquaredError(
          ctx, y, Tensor::Zeros(y.shape(), y.dtype(), kernels_->allocator()));
      EXPECT_TRUE(ctx.ok()) << ctx.status();
      NoSink sink;
      BackwardPass pass(tape, *kernels_, sink, BackwardPass::Mode::kWhole);
      pass.Seed(loss);
      while (*pass.Next()) {
      }
    }
    return ValuesOf(arena->grads());
  };
  std::vector<double> sum(gradients(DType::kF32, 0, 1).size(), 0.0);
  for (int m = 0; m < 3; ++m) {
    const std::vector<double> one = gradients(std::nullopt, m, m + 1);
    EXPECT_EQ(gradients(DType::kF32, m, m + 1), one);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = static_cast<float>(sum[i] + one[i]);
    }
  }
  EXPECT_EQ(gradients(DType::kF32, 0, 3), sum);
}

INSTANTIATE_TEST_SUITE_P(Kernels, MasterValuesTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "cpu" : "reference";
                         });

}  // namespace
}  // namespace troupe::nn
