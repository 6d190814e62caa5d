// Loops in which ranks use different parameters, or none: DDP's
// find_unused_parameters and static_graph, in threads and under seeds.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/troupe/ranks.h"
#include "troupe/ddp.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two layers, of which a forward uses one, or both; and one that none uses.
struct Either : nn::Net {
  nn::Linear& first = Add<nn::Linear>("first", 10, 5);
  nn::Linear& second = Add<nn::Linear>("second", 10, 5);
  nn::Linear& unused = Add<nn::Linear>("unused", 10, 5);
  Var Forward(Var x) override { return uses_second ? second(x) : first(x); }
  bool uses_second = false;
};

std::vector<float> ValuesOf(nn::Linear& layer) {
  const Tensor& value = layer.weight().value;
  return {value.data<float>(), value.data<float>() + value.numel()};
}

// Ranks that differ in what they use, and in which of three backwards of a step
// they use it; in some steps nobody uses the second layer.
Program StepsOfEither(std::vector<float>* first, std::vector<float>* second) {
  return [=](Rank& rank) {
    auto model = rank.Make<Either>();
    DDPOptions options;
    options.first_bucket_mb = options.bucket_cap_mb = 0.0001;
    DDP ddp(model, options);
    Adam adam(ddp, nn::AdamWDefaults());
    const std::vector<float> unused = ValuesOf(model->unused);
    for (int step = 0; step < 6; ++step) {
      adam.ZeroGrad();
      for (int m = 0; m < 3; ++m) {
        model->uses_second =
            step % 3 != 0 && (step + m + rank.number()) % 3 == 0;
        std::optional<DDP::Unsynced> unsynced;
        if (m < 2) unsynced.emplace(ddp.core());
        nn::MeanSquaredError(ddp(rank.Randn({4, 10})), rank.Randn({4, 5}))
            .Backward();
      }
      const std::vector<float> before = ValuesOf(model->second);
      adam.Step();
      EXPECT_EQ(ValuesOf(model->second) == before, step % 3 == 0) << step;
    }
    EXPECT_EQ(ValuesOf(model->unused), unused) << "weight decay";
    for (const nn::Parameter* parameter : ddp.Parameters()) {
      const Var all = rank.world().AllGather(parameter->value);
      const std::int64_t count = parameter->value.numel();
      const float* const values = all.tensor().data<float>();
      for (std::int64_t i = 0; i < all.tensor().numel(); ++i) {
        ASSERT_EQ(values[i], values[i % count]) << parameter->name;
      }
    }
    if (rank.number() != 0) return;
    *first = ValuesOf(model->first);
    *second = ValuesOf(model->second);
  };
}

TEST(UnusedParametersTest, WhatNoRankHasUsedIsLeftAlone) {
  for (const int ranks : {1, 2, 3}) {
    std::vector<float> want[2];
    const absl::Status status =
        Spawn(StepsOfEither(&want[0], &want[1]), Ranks(ranks));
    ASSERT_TRUE(status.ok()) << status;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::vector<float> have[2];
      const SimulatedRun run =
          Simulate(StepsOfEither(&have[0], &have[1]), Ranks(ranks), {seed});
      ASSERT_TRUE(run.status.ok()) << run.status;
      EXPECT_EQ(have[0], want[0]) << "seed " << seed;
      EXPECT_EQ(have[1], want[1]) << "seed " << seed;
    }
  }
}

// Updates in the backward leave them alone, too.
TEST(UnusedParametersTest, StepsInBackwardLeaveThemAlone) {
  const auto trained = [](bool in_backward) {
    std::vector<std::vector<float>> values(3);
    const Program program = [&](Rank& rank) {
      auto model = rank.Make<Either>();
      DDPOptions options;
      options.first_bucket_mb = options.bucket_cap_mb = 0.0001;
      DDP ddp(model, options);
      Adam adam(ddp, nn::AdamWDefaults());
      if (in_backward) ddp.StepInBackward(adam);
      for (int step = 0; step < 4; ++step) {
        model->uses_second = step > 1 && rank.number() == 1;
        adam.ZeroGrad();
        nn::MeanSquaredError(ddp(rank.Randn({4, 10})), rank.Randn({4, 5}))
            .Backward();
        adam.Step();
      }
      if (rank.number() != 0) return;
      values = {ValuesOf(model->first), ValuesOf(model->second),
                ValuesOf(model->unused)};
    };
    const absl::Status status = Spawn(program, Ranks(2));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  };
  EXPECT_EQ(trained(true), trained(false));
}

// The layer that one rank has used is updated on both, by decay too.
TEST(UnusedParametersTest, AverageGradientsGivesOtherRanksGradients) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<Either>();
    SgdOptions options{/*lr=*/0.1, /*momentum=*/0.9};
    options.weight_decay = 0.1;
    Sgd sgd(model, options);
    const std::vector<float> unused = ValuesOf(model->unused);
    model->uses_second = rank.number() == 1;
    for (int step = 0; step < 3; ++step) {
      sgd.ZeroGrad();
      nn::MeanSquaredError(model(rank.Randn({4, 10})), rank.Randn({4, 5}))
          .Backward();
      AverageGradients(model);
      sgd.Step();
    }
    EXPECT_EQ(ValuesOf(model->unused), unused);
    for (nn::Linear* layer : {&model->first, &model->second}) {
      const std::vector<float> own = ValuesOf(*layer);
      const Var all = rank.world().AllGather(layer->weight().value);
      for (std::size_t i = 0; i < own.size(); ++i) {
        ASSERT_EQ(all.tensor().data<float>()[i], own[i]) << i;
      }
    }
  };
  const absl::Status status = Spawn(program, Ranks(2));
  EXPECT_TRUE(status.ok()) << status;
}

TEST(UnusedParametersTest, AStaticGraphThatChangesIsNamed) {
  const Program program = [](Rank& rank) {
    auto model = rank.Make<Either>();
    DDPOptions options;
    options.static_graph = true;
    DDP ddp(model, options);
    Sgd sgd(ddp, {/*lr=*/0.1});
    for (int step = 0; step < 2; ++step) {
      sgd.ZeroGrad();
      model->uses_second = step == 1;
      nn::MeanSquaredError(ddp(rank.Randn({2, 10})), rank.Randn({2, 5}))
          .Backward();
      sgd.Step();
    }
  };
  EXPECT_THAT(std::string(Spawn(program, Ranks(2)).message()),
              AllOf(HasSubstr("rank "),
                    HasSubstr("Step() at unused_parameters_test.cc:"),
                    HasSubstr("step 2 uses second.bias, second.weight and "
                              "lacks first.bias, first.weight")));
}

}  // namespace
}  // namespace troupe
