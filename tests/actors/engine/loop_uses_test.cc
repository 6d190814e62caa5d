// A loop's optimizer leaves parameters alone that no backward of a step has
// used, on any rank: PyTorch's rule for .grad None, and that of its DDP with
// find_unused_parameters.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/ops/add.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/actors/engine/loop_ranks.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kUsesSteps = 4;

// Layers that a forward computes, and that its result depends on.
enum class Uses { kFirst, kSecond, kBoth, kFirstBesideSecond };

// Two linear layers. The gradients of one do not depend on the other, unless
// both are used.
class Either : public nn::Module {
 public:
  Either()
      : first_(Add<nn::Linear>("first", 4, 2)),
        second_(Add<nn::Linear>("second", 4, 2)) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    if (uses == Uses::kFirst) return first_(ctx, x);
    if (uses == Uses::kSecond) return second_(ctx, x);
    const nn::Tensor one = first_(ctx, x), two = second_(ctx, x);
    return uses == Uses::kBoth ? nn::ops::Add(ctx, one, two) : one;
  }
  Uses uses = Uses::kFirst;

 private:
  nn::Linear& first_;
  nn::Linear& second_;
};

// One backward: the step of its batch, and what each rank uses.
struct Pass {
  std::int64_t batch;
  std::vector<Uses> uses;
};
// The backwards of a step; all but the last one are not synced.
using StepPasses = std::vector<Pass>;

struct Rule {
  const char* name;
  std::function<void(JobSpec& spec)> edit;
};

void UseSgd(JobSpec& spec) {
  nn::SgdOptions sgd;
  sgd.lr = 0.05;
  sgd.momentum = 0.9;
  sgd.dampening = 0.25;  // not in the first update: it counts them
  sgd.weight_decay = 0.1;
  spec.optimizer = sgd;
}

void UseFastAdamW(JobSpec& spec) {
  nn::AdamOptions adam = nn::AdamWDefaults();
  adam.lr = 0.05;
  adam.weight_decay = 0.1;
  spec.optimizer = adam;
}

void UseLamb(JobSpec& spec) {
  nn::LambOptions lamb;
  lamb.lr = 0.05;
  spec.optimizer = lamb;
}

void ExpectOk(const absl::Status& status) {
  EXPECT_TRUE(status.ok()) << status;
}

void Backward(LoopRank& rank, const EngineFixture& job, const Pass& pass,
              bool synced) {
  static_cast<Either&>(rank.module()).uses = pass.uses[rank.rank()];
  LoopBackward backward;
  backward.tape = &rank.tape();
  backward.loss = rank.Loss(job.Batches(rank.rank(), pass.batch)[0]);
  backward.scale = rank.ScaleOf(backward.loss);
  backward.synced = synced;
  ExpectOk(rank.engine().Backward(backward));
}

LoopOptions WithEither() {
  LoopOptions options;
  options.model = [] { return std::make_unique<Either>(); };
  return options;
}

// Runs the steps on all ranks; expects equal replicas, and returns their
// values.
ParameterValues Train(const EngineFixture& job,
                      const std::vector<StepPasses>& steps,
                      const LoopOptions& options = WithEither()) {
  LoopRanks ranks(job, options);
  ranks.Run([&](LoopRank& rank) {
    // Stale memory must not be taken for gradients.
    nn::Tensor grads = rank.engine().parameters().arena(0).grads();
    ExpectOk(rank.engine().kernels().Fill(7, grads));
    for (const StepPasses& passes : steps) {
      ExpectOk(rank.engine().ZeroGrad());
      for (std::size_t i = 0; i < passes.size(); ++i) {
        Backward(rank, job, passes[i], /*synced=*/i + 1 == passes.size());
      }
      ExpectOk(rank.engine().Step());
      EXPECT_EQ(rank.engine().Unfinished(), "");
    }
  });
  const auto values = [&](int rank) {
    return ValuesOf(ranks.rank(rank).engine().parameters().arena(0));
  };
  for (int rank = 1; rank < job.plan().mesh.size(); ++rank) {
    EXPECT_EQ(values(rank), values(0)) << "rank " << rank;
  }
  return values(0);
}

class LoopUsesTest : public testing::TestWithParam<Rule> {
 protected:
  static EngineFixture Job(int ranks, int steps = kUsesSteps) {
    return EngineFixture({ranks, Numbers::kFloat, steps},
                         PowersOfTwo(ranks, 1, GetParam().edit));
  }
};

// The steps in between, which use another layer, leave no trace: no decay, no
// momentum, no step of the optimizer.
TEST_P(LoopUsesTest, WhatNoRankUsesIsLeftAlone) {
  for (const int ranks : {1, 2}) {
    for (const bool exact_mean : {false, true}) {
      for (const Uses other : {Uses::kFirst, Uses::kFirstBesideSecond}) {
        const EngineFixture job = Job(ranks);
        LoopOptions options = WithEither();
        options.exact_mean = exact_mean;
        const std::vector<Uses> second(ranks, Uses::kSecond);
        const std::vector<Uses> first(ranks, other);
        const ParameterValues have = Train(
            job, {{{0, second}}, {{1, first}}, {{2, first}}, {{3, second}}},
            options);
        const ParameterValues want =
            Train(job, {{{0, second}}, {{3, second}}}, options);
        EXPECT_EQ(have.at("second.weight"), want.at("second.weight")) << ranks;
        EXPECT_EQ(have.at("second.bias"), want.at("second.bias")) << ranks;
        EXPECT_NE(have.at("first.weight"), want.at("first.weight")) << ranks;
      }
    }
  }
}

// A parameter of one rank's forward moves on all of them.
TEST_P(LoopUsesTest, WhatOneRankUsesIsUpdatedOnAll) {
  const EngineFixture job = Job(/*ranks=*/2);
  for (const bool run_inline : {false, true}) {
    LoopOptions options = WithEither();
    options.run_inline = run_inline;
    const ParameterValues before = Train(job, {}, options);
    const ParameterValues after =
        Train(job, {{{0, {Uses::kFirst, Uses::kSecond}}}}, options);
    EXPECT_NE(after.at("first.weight"), before.at("first.weight"));
    EXPECT_NE(after.at("second.weight"), before.at("second.weight"));
  }
}

// Marks are of all backwards since ZeroGrad(). (DDP once took those of the last
// one: github.com/pytorch/pytorch/issues/69031.)
TEST_P(LoopUsesTest, TheFirstOfThreeBackwardsCounts) {
  for (const int ranks : {1, 2}) {
    const EngineFixture job = Job(ranks);
    std::vector<Uses> once(ranks, Uses::kFirst);
    once.back() = Uses::kSecond;
    const std::vector<Uses> never(ranks, Uses::kFirst);
    const ParameterValues have =
        Train(job, {{{0, once}, {1, never}, {2, never}}});
    const ParameterValues want = Train(job, {{{0, once}}});
    EXPECT_EQ(have.at("second.weight"), want.at("second.weight")) << ranks;
    const ParameterValues before = Train(job, {});
    EXPECT_NE(have.at("second.weight"), before.at("second.weight")) << ranks;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LoopUsesTest,
                         testing::Values(Rule{"Sgd", UseSgd},
                                         Rule{"AdamW", UseFastAdamW},
                                         Rule{"Lamb", UseLamb}),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

// PyTorch 2.15: .grad of what one of two ranks has used is half of that rank's.
TEST(LoopUses, TheOtherRanksCountAsZerosInTheAverage) {
  const EngineFixture job({/*ranks=*/2, Numbers::kFloat, kUsesSteps},
                          PowersOfTwo(2, 1));
  LoopOptions options = WithEither();
  options.optimizer = false;
  LoopRanks ranks(job, options);
  std::vector<float> own[2], mean[2];
  ranks.Run([&](LoopRank& rank) {
    const auto grads = [&rank] {
      for (const nn::Parameter* parameter : rank.module().Parameters()) {
        if (parameter->name != "second.weight") continue;
        const float* const values = parameter->grad.data<float>();
        return std::vector<float>(values, values + parameter->grad.numel());
      }
      return std::vector<float>();
    };
    const Pass pass = {0, {Uses::kFirst, Uses::kSecond}};
    Backward(rank, job, pass, /*synced=*/false);
    own[rank.rank()] = grads();
    ExpectOk(rank.engine().ZeroGrad());
    Backward(rank, job, pass, /*synced=*/true);
    ExpectOk(rank.engine().AwaitGradients());
    mean[rank.rank()] = grads();
  });
  ASSERT_EQ(own[1].size(), 8u);
  EXPECT_NE(own[1][0], 0);
  EXPECT_EQ(mean[0], mean[1]);
  for (std::size_t i = 0; i < own[1].size(); ++i) {
    EXPECT_EQ(2 * mean[0][i], own[1][i]) << i;
  }
}

// A layer may be used first in a second reduced backward of a step.
TEST(LoopUses, ASecondReducedBackwardCounts) {
  const EngineFixture job({/*ranks=*/2, Numbers::kFloat, kUsesSteps},
                          PowersOfTwo(2, 1, UseSgd));
  LoopRanks ranks(job, WithEither());
  const auto values = [&](int rank) {
    return ValuesOf(ranks.rank(rank).engine().parameters().arena(0));
  };
  const ParameterValues before = values(0);
  ranks.Run([&](LoopRank& rank) {
    Backward(rank, job, {0, {Uses::kFirst, Uses::kFirst}}, /*synced=*/true);
    Backward(rank, job, {1, {Uses::kFirst, Uses::kSecond}}, /*synced=*/true);
    ExpectOk(rank.engine().Step());
  });
  EXPECT_EQ(values(0), values(1));
  EXPECT_NE(values(0).at("second.weight"), before.at("second.weight"));
}

// The marks of static_graph travel in the first step alone, and the bits are
// the same.
TEST(LoopUses, AStaticGraphSendsMarksOnce) {
  const EngineFixture job({/*ranks=*/2, Numbers::kFloat, kUsesSteps},
                          PowersOfTwo(2, 1, UseSgd));
  const auto run = [&](bool is_static, int& launches) {
    LoopOptions options = WithEither();
    options.static_graph = is_static;
    LoopRanks ranks(job, options);
    ranks.Run([&](LoopRank& rank) {
      for (std::int64_t step = 0; step < kUsesSteps; ++step) {
        // The last step begins without ZeroGrad().
        if (step + 1 < kUsesSteps) ExpectOk(rank.engine().ZeroGrad());
        Backward(rank, job, {step, {Uses::kFirst, Uses::kSecond}},
                 /*synced=*/true);
        ExpectOk(rank.engine().Step());
      }
    });
    launches = ranks.rank(0).host().launches();
    return ValuesOf(ranks.rank(0).engine().parameters().arena(0));
  };
  int launches[2];
  EXPECT_EQ(run(true, launches[1]), run(false, launches[0]));
  EXPECT_EQ(launches[0] - launches[1], kUsesSteps - 1);
}

TEST(LoopUses, AStaticGraphThatChangesIsNamed) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kUsesSteps},
                          PowersOfTwo(1, 1, UseSgd));
  LoopOptions options = WithEither();
  options.static_graph = true;
  const auto error = [&](Uses uses) {
    LoopRanks ranks(job, options);
    LoopRank& rank = ranks.rank(0);
    for (int step = 0; step < 2; ++step) {
      ExpectOk(rank.engine().ZeroGrad());
      Backward(rank, job, {step, {Uses::kFirst}}, /*synced=*/true);
      ExpectOk(rank.engine().Step());
    }
    ExpectOk(rank.engine().ZeroGrad());
    Backward(rank, job, {2, {uses}}, /*synced=*/true);
    return std::string(rank.engine().Step().message());
  };
  EXPECT_EQ(error(Uses::kBoth),
            "static_graph says that all steps use the same parameters, and "
            "step 3 uses second.bias, second.weight, unlike the first step; "
            "leave static_graph out");
  EXPECT_EQ(error(Uses::kSecond),
            "static_graph says that all steps use the same parameters, and "
            "step 3 uses second.bias, second.weight and lacks first.bias, "
            "first.weight, unlike the first step; leave static_graph out");
  EXPECT_EQ(error(Uses::kFirst), "");
}

// A step that is skipped as a whole counts for no parameter, left out or not.
TEST(LoopUses, ASkippedStepMakesNothingYounger) {
  const EngineFixture job({/*ranks=*/1, Numbers::kFloat, kUsesSteps},
                          PowersOfTwo(1, 1, [](JobSpec& spec) {
                            nn::AdamOptions adam = nn::AdamWDefaults();
                            adam.common.skip_nonfinite = true;
                            spec.optimizer = adam;
                            spec.plan.reductions.update_needs_all_buckets =
                                true;
                          }));
  const Pass first = {1, {Uses::kFirst}}, second = {0, {Uses::kSecond}};
  const auto run = [&](bool spoil) {
    LoopRanks ranks(job, WithEither());
    LoopRank& rank = ranks.rank(0);
    const auto step = [&](const Pass& pass, bool infinite) {
      ExpectOk(rank.engine().ZeroGrad());
      Backward(rank, job, pass, /*synced=*/true);
      if (infinite) {
        nn::Tensor grad = rank.module().Parameters()[0]->grad;
        grad.data<float>()[0] = std::numeric_limits<float>::infinity();
      }
      ExpectOk(rank.engine().Step());
    };
    step(second, /*infinite=*/false);
    if (spoil) step(first, /*infinite=*/true);
    step(first, /*infinite=*/false);
    step(second, /*infinite=*/false);
    return ValuesOf(rank.engine().parameters().arena(0));
  };
  EXPECT_EQ(run(true), run(false));
}

}  // namespace
}  // namespace troupe::actors
