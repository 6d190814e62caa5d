// tests/nn/ops compares the formula with PyTorch; these tests check how the
// optimizer applies it to the buckets of an arena.

#include "nn/optim/sgd.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "tests/nn/testing/host_scalars.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// Returns the kernel sets that this machine can run.
std::vector<std::unique_ptr<Kernels>> AllSets() {
  std::vector<std::unique_ptr<Kernels>> sets;
  sets.push_back(CreateReferenceKernels());
  for (base::CpuIsa isa :
       {base::CpuIsa::kPlain, base::CpuIsa::kAvx2, base::CpuIsa::kAvx512}) {
    if (isa > base::BestCpuIsa()) continue;
    CpuKernelOptions options;
    options.isa = isa;
    sets.push_back(CreateCpuKernels(options));
  }
  return sets;
}

class SgdTest : public testing::Test {
 protected:
  SgdTest() {
    for (int i = 0; i < 3; ++i) {
      parameters_[i].name = std::string(1, static_cast<char>('a' + i));
      parameters_[i].shape = {20 + i};
      parameters_[i].init = Initializer::Uniform(1);
    }
  }

  // Trains for three steps with the parameters in these buckets, updating the
  // buckets in this order, and returns all parameters.
  std::vector<double> Train(const std::vector<std::vector<int>>& buckets,
                            const std::vector<int>& order,
                            const SgdOptions& options) {
    std::vector<std::vector<Parameter*>> pointers;
    for (const std::vector<int>& bucket : buckets) {
      pointers.emplace_back();
      for (int i : bucket) pointers.back().push_back(&parameters_[i]);
    }
    auto arena = *ParameterArena::Create(pointers, {16}, kernels_->allocator());
    EXPECT_TRUE(arena->Initialize(1).ok());
    Sgd sgd(options);
    EXPECT_TRUE(sgd.Attach(*arena).ok());
    for (int step = 0; step < 3; ++step) {
      for (Parameter& p : parameters_) {
        if (!p.requires_grad) continue;
        const std::vector<double> draws =
            NormalDraws(p.name + std::to_string(step), p.shape.numel());
        for (std::size_t i = 0; i < draws.size(); ++i) {
          p.grad.data<float>()[i] = static_cast<float>(draws[i]);
        }
      }
      for (int bucket : order) {
        EXPECT_TRUE(
            sgd.Update(*kernels_, Scalars(sgd, step), *arena, bucket).ok());
      }
    }
    ExpectZeroPadding(*arena);
    std::vector<double> all;
    for (Parameter& p : parameters_) {
      for (double value : ValuesOf(p.value)) all.push_back(value);
    }
    return all;
  }

  Tensor Scalars(const Sgd& sgd, int step) {
    return ScalarsFor(sgd, step, /*loss_count=*/64, kernels_->allocator());
  }

  void ExpectZeroPadding(const ParameterArena& arena) {
    std::vector<double> values = ValuesOf(arena.values());
    for (const ArenaSlot& slot : arena.slots()) {
      for (std::int64_t i = 0; i < slot.parameter->shape.numel(); ++i) {
        values[slot.begin + i] = 0;
      }
    }
    EXPECT_EQ(values, std::vector<double>(values.size(), 0.0));
  }

  std::unique_ptr<Kernels> kernels_ = CreateReferenceKernels();
  Parameter parameters_[3];
};

TEST_F(SgdTest, BucketsDoNotChangeTheBits) {
  const SgdOptions options = {0.1, 0.9, 0, 0.01, true};
  const auto one = Train({{0, 1, 2}}, {0}, options);
  EXPECT_EQ(Train({{2}, {1}, {0}}, {0, 1, 2}, options), one);
  EXPECT_EQ(Train({{2, 0}, {1}}, {1, 0}, options), one);
}

TEST_F(SgdTest, WithoutMomentumThereIsNoState) {
  auto arena =
      *ParameterArena::Create({{&parameters_[0]}}, {16}, kernels_->allocator());
  Sgd plain(SgdOptions{0.5});
  EXPECT_TRUE(plain.Attach(*arena).ok());
  EXPECT_TRUE(arena->states().empty());
  Sgd heavy(SgdOptions{0.5, 0.9});
  EXPECT_TRUE(heavy.Attach(*arena).ok());
  ASSERT_EQ(arena->states().size(), 1u);
  EXPECT_EQ(arena->states()[0].first, "momentum_buffer");
}

TEST_F(SgdTest, DividesTheSumByTheCountOnce) {
  parameters_[0].init = Initializer::Constant(0);
  auto arena =
      *ParameterArena::Create({{&parameters_[0]}}, {16}, kernels_->allocator());
  EXPECT_TRUE(arena->Initialize(1).ok());
  Sgd sgd(SgdOptions{0.5});
  EXPECT_TRUE(sgd.Attach(*arena).ok());
  for (float& g : parameters_[0].grad.span<float>()) g = 32;
  ASSERT_TRUE(sgd.Update(*kernels_, Scalars(sgd, 0), *arena, 0).ok());
  EXPECT_EQ(ValuesOf(parameters_[0].value), std::vector<double>(20, -0.25));
}

// Neither weight decay nor momentum changes a frozen parameter.
TEST_F(SgdTest, LeavesFrozenParametersAlone) {
  parameters_[1].requires_grad = false;
  const auto moved =
      Train({{0, 1}, {2}}, {0, 1}, {0.1, 0.9, 0, /*weight_decay=*/0.5, true});
  const std::vector<double> first(moved.begin(), moved.begin() + 20);
  const std::vector<double> frozen(moved.begin() + 20, moved.begin() + 41);
  auto arena = *ParameterArena::Create({{&parameters_[0]}, {&parameters_[1]}},
                                       {16}, kernels_->allocator());
  EXPECT_TRUE(arena->Initialize(1).ok());
  EXPECT_EQ(ValuesOf(parameters_[1].value), frozen);
  EXPECT_NE(ValuesOf(parameters_[0].value), first);
}

// If every target of the batch was ignored, PyTorch's gradients are 0.
TEST_F(SgdTest, ABatchWithoutTargetsHasNoGradient) {
  for (const std::unique_ptr<Kernels>& kernels : AllSets()) {
    parameters_[0].init = Initializer::Constant(1);
    auto arena = *ParameterArena::Create({{&parameters_[0]}}, {16},
                                         kernels->allocator());
    EXPECT_TRUE(arena->Initialize(1).ok());
    Sgd sgd({/*lr=*/0.5, 0, 0, /*weight_decay=*/0.5});
    EXPECT_TRUE(sgd.Attach(*arena).ok());
    for (float& g : parameters_[0].grad.span<float>()) g = 32;
    const Tensor scalars =
        ScalarsFor(sgd, /*step=*/0, /*loss_count=*/0, kernels_->allocator());
    ASSERT_TRUE(sgd.Update(*kernels, scalars, *arena, 0).ok());
    EXPECT_EQ(ValuesOf(parameters_[0].value), std::vector<double>(20, 0.75))
        << kernels->Describe();
  }
}

// The same as PyTorch's gradients of a loss with reduction="sum".
TEST_F(SgdTest, NoCountDividesTheGradientOfASum) {
  for (const std::unique_ptr<Kernels>& kernels : AllSets()) {
    for (const double count : {0.0, 64.0}) {
      parameters_[0].init = Initializer::Constant(1);
      auto arena = *ParameterArena::Create({{&parameters_[0]}}, {16},
                                           kernels->allocator());
      EXPECT_TRUE(arena->Initialize(1).ok());
      Sgd sgd({/*lr=*/0.5});
      EXPECT_TRUE(sgd.Attach(*arena).ok());
      for (float& g : parameters_[0].grad.span<float>()) g = 32;
      const Tensor scalars =
          ScalarsFor(sgd, /*step=*/0, count, kernels_->allocator());
      ScalarsIn(scalars).summed = 1;
      ScalarsIn(scalars).loss_scale = 8;
      ASSERT_TRUE(sgd.Update(*kernels, scalars, *arena, 0).ok());
      EXPECT_EQ(ValuesOf(parameters_[0].value), std::vector<double>(20, -1))
          << kernels->Describe();
    }
  }
}

TEST_F(SgdTest, MomentumNeedsItsBuffer) {
  for (const std::unique_ptr<Kernels>& kernels : AllSets()) {
    auto arena = *ParameterArena::Create({{&parameters_[0]}}, {16},
                                         kernels->allocator());
    EXPECT_TRUE(arena->Initialize(1).ok());
    const std::vector<double> before = ValuesOf(arena->values());
    Sgd sgd({0.5, /*momentum=*/0.9});
    EXPECT_EQ(sgd.Update(*kernels, Scalars(sgd, 0), *arena, 0),
              absl::FailedPreconditionError(
                  "SGD: momentum is 0.9 but there is no buffer for it: call "
                  "Attach() first"));
    EXPECT_EQ(ValuesOf(arena->values()), before) << kernels->Describe();
  }
}

TEST(SgdOptions, RefusesWhatPyTorchRefuses) {
  EXPECT_TRUE(SgdOptions{}.Validate().ok());
  EXPECT_TRUE((SgdOptions{0.1, 0.9, 0, 0.01, true}.Validate().ok()));
  for (const SgdOptions& wrong :
       {SgdOptions{-0.1}, SgdOptions{0.1, -1}, SgdOptions{0.1, 0, 0, -1},
        SgdOptions{0.1, 0, 0, 0, true}, SgdOptions{0.1, 0.9, 0.5, 0, true},
        SgdOptions{0.1, 0.9, std::nan("")}, SgdOptions{std::nan("")},
        SgdOptions{0.1, INFINITY}}) {
    EXPECT_EQ(wrong.Validate().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(SgdOptions{-0.5}.Validate().message(),
            "SgdOptions.lr = -0.5: must be at least 0");
}

// Returns parameter and momentum after three steps, updated in these parts of a
// bucket of 1000 elements.
std::vector<double> TrainInParts(Kernels& kernels,
                                 const std::vector<std::int64_t>& cuts) {
  Parameter parameter;
  parameter.name = "w";
  parameter.shape = {1000};
  parameter.init = Initializer::Uniform(1);
  auto arena = *ParameterArena::Create({{&parameter}}, {}, kernels.allocator());
  EXPECT_TRUE(arena->Initialize(1).ok());
  Sgd sgd({0.1, 0.9, 0, 1e-2, /*nesterov=*/true});
  EXPECT_TRUE(sgd.IsElementwise());
  EXPECT_TRUE(sgd.Attach(*arena).ok());
  for (std::int64_t step = 0; step < 3; ++step) {
    const Tensor grads =
        MakeTensor({1000}, DType::kF32, NormalDraws(std::to_string(step), 1000),
                   kernels.allocator());
    const Tensor scalars =
        ScalarsFor(sgd, step, /*loss_count=*/64, kernels.allocator());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const ArenaRange range = {cuts[i], cuts[i + 1]};
      EXPECT_TRUE(sgd.UpdateRange(kernels, scalars, *arena, range,
                                  grads.FlatView(range.begin, {range.size()}))
                      .ok());
    }
  }
  std::vector<double> all = ValuesOf(parameter.value);
  for (double state : ValuesOf(arena->states()[0].second)) {
    all.push_back(state);
  }
  return all;
}

// IsElementwise(): any cut gives the bits of the whole, with every kernel set.
TEST(SgdParts, GiveTheBitsOfTheWhole) {
  for (const std::unique_ptr<Kernels>& kernels : AllSets()) {
    const std::vector<double> whole = TrainInParts(*kernels, {0, 1000});
    EXPECT_EQ(TrainInParts(*kernels, {0, 1, 17, 500, 1000}), whole)
        << kernels->Describe();
    EXPECT_EQ(TrainInParts(*kernels, {0, 333, 1000}), whole)
        << kernels->Describe();
  }
}

}  // namespace
}  // namespace troupe::nn
