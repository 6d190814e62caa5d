// Ranks with different numbers of batches beside PyTorch, in threads and under
// seeds.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_file.h"
#include "tests/troupe/replicas.h"
#include "troupe/join.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

// --- PyTorch's join (tools/golden/make_join.py) ---

struct ParityModel : nn::Net {
  nn::Linear& fc1 = Add<nn::Linear>("fc1", 4, 6);
  nn::Linear& fc2 = Add<nn::Linear>("fc2", 6, 3);
  Var Forward(Var x) override { return fc2(fc1(x).Tanh()); }
};

// Trains on 3 and 5 batches. `late`: ZeroGrad() comes behind the forward.
Program UnevenLoop(const std::string& rule, const JoinOptions& options,
                   bool late, std::vector<float>* values) {
  return [=](Rank& rank) {
    auto model = rank.Make<ParityModel>();
    for (const nn::Parameter* parameter : model.Parameters()) {
      Fill(parameter->value, "join/" + parameter->name, 0.5);
    }
    DDPOptions ddp_options;
    ddp_options.first_bucket_mb = ddp_options.bucket_cap_mb = 0.0001;
    DDP ddp(model, ddp_options);
    std::optional<Optimizer> optimizer;
    if (rule == "sgd") {
      optimizer.emplace(Sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9}));
    } else {
      AdamOptions adamw = nn::AdamWDefaults();
      adamw.lr = 0.05;
      adamw.weight_decay = 0.125;
      optimizer.emplace(Adam(ddp, adamw));
    }
    {
      auto joined = ddp.Join(options);
      for (int i = 0; i < kBatches[rank.number()]; ++i) {
        const Var x = rank.Zeros({4, 4}), y = rank.Zeros({4, 3});
        Fill(x, absl::StrCat("join/x", rank.number(), ".", i), 1);
        Fill(y, absl::StrCat("join/y", rank.number(), ".", i), 1);
        if (!late) optimizer->ZeroGrad();
        const Var loss = nn::MeanSquaredError(ddp(x), y);
        if (late) optimizer->ZeroGrad();
        loss.Backward();
        optimizer->Step();
      }
    }
    ExpectEqualReplicas(rank, ddp, *optimizer, /*steps=*/5);
    if (rank.number() == 0) *values = ValuesOf(ddp);
  };
}

TEST(JoinParityTest, UnevenBatchesTrainAsInPyTorch) {
  const nn::GoldenFile golden = *nn::GoldenFile::Open("join_f32");
  for (const std::string rule : {"sgd", "adamw"}) {
    for (const bool initial : {true, false}) {
      JoinOptions options;
      options.divide_by_initial_world_size = initial;
      std::vector<double> expected;
      for (const char* name :
           {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) {
        const std::vector<double> part = golden.Values(
            absl::StrCat(rule, initial ? "/initial/" : "/joined/", name));
        expected.insert(expected.end(), part.begin(), part.end());
      }
      for (const bool late : {false, true}) {
        std::vector<float> values;
        const absl::Status status =
            Spawn(UnevenLoop(rule, options, late, &values), Ranks(2));
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_THAT(values, Pointwise(FloatNear(2e-6F), expected))
            << rule << ", initial " << initial << ", late " << late;
      }
    }
  }
}

struct Last : nn::Net {
  nn::Linear& last = Add<nn::Linear>("last", 3, 2);
  Var Forward(Var x) override { return last(x); }
};

// Trains two models in turn, the second on what the first one gives.
Program TwoModels(const std::string& rule, std::vector<float>* values) {
  return [=](Rank& rank) {
    auto first = rank.Make<ParityModel>();
    auto second = rank.Make<Last>();
    for (const Trainable& model : {Trainable(first), Trainable(second)}) {
      for (const nn::Parameter* parameter : model.Parameters()) {
        Fill(parameter->value, "join/" + parameter->name, 0.5);
      }
    }
    DDP a(first), b(second);
    const auto optimizer_of = [&rule](const DDP& ddp) -> Optimizer {
      if (rule == "sgd") return Sgd(ddp, {/*lr=*/0.1, /*momentum=*/0.9});
      AdamOptions adamw = nn::AdamWDefaults();
      adamw.lr = 0.05;
      adamw.weight_decay = 0.125;
      return Adam(ddp, adamw);
    };
    Optimizer of_a = optimizer_of(a), of_b = optimizer_of(b);
    {
      auto joined = Join({a, b});
      for (int i = 0; i < kBatches[rank.number()]; ++i) {
        const Var x = rank.Zeros({4, 4}), y = rank.Zeros({4, 3}),
                  z = rank.Zeros({4, 2});
        Fill(x, absl::StrCat("join/x", rank.number(), ".", i), 1);
        Fill(y, absl::StrCat("join/y", rank.number(), ".", i), 1);
        Fill(z, absl::StrCat("join/z", rank.number(), ".", i), 1);
        of_a.ZeroGrad();
        const Var given = a(x);
        nn::MeanSquaredError(given, y).Backward();
        of_a.Step();
        of_b.ZeroGrad();
        nn::MeanSquaredError(b(given.Detached()), z).Backward();
        of_b.Step();
      }
    }
    ExpectEqualReplicas(rank, a, of_a, /*steps=*/5);
    ExpectEqualReplicas(rank, b, of_b, /*steps=*/5);
    if (rank.number() != 0) return;
    *values = ValuesOf(a);
    const std::vector<float> others = ValuesOf(b);
    values->insert(values->end(), others.begin(), others.end());
  };
}

TEST(JoinParityTest, TwoModelsTrainAsInPyTorch) {
  const nn::GoldenFile golden = *nn::GoldenFile::Open("join_f32");
  for (const std::string rule : {"sgd", "adamw"}) {
    std::vector<double> expected;
    for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
                             "last.weight", "last.bias"}) {
      const std::vector<double> part =
          golden.Values(absl::StrCat(rule, "/two/", name));
      expected.insert(expected.end(), part.begin(), part.end());
    }
    std::vector<float> values;
    const absl::Status status = Spawn(TwoModels(rule, &values), Ranks(2));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(values, Pointwise(FloatNear(2e-6F), expected)) << rule;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      std::vector<float> again;
      const SimulatedRun run =
          Simulate(TwoModels(rule, &again), Ranks(2), {seed});
      ASSERT_TRUE(run.status.ok()) << run.status;
      EXPECT_EQ(again, values) << "seed " << seed;
    }
  }
}

TEST(JoinParityTest, SeedsChangeNoBit) {
  std::vector<float> threads;
  ASSERT_TRUE(Spawn(UnevenLoop("sgd", {}, false, &threads), Ranks(2)).ok());
  ASSERT_FALSE(threads.empty());
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> values;
    const SimulatedRun run =
        Simulate(UnevenLoop("sgd", {}, /*late=*/seed % 2 == 1, &values),
                 Ranks(2), {seed});
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_EQ(values, threads) << "seed " << seed;
  }
}

}  // namespace
}  // namespace troupe
