// Loops in which ranks use different parameters, or none: DDP's
// find_unused_parameters and static_graph, in threads and under seeds.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/serialize/safetensors.h"
#include "nn/tensor/caching_allocator.h"
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

using MakeOptimizer =
    std::function<std::unique_ptr<Optimizer>(const Trainable& model)>;

// Six steps, or the first three, or the last three from a file; in steps 0 and
// 3 no rank uses the second layer. With `restless`, a run from a file has left
// out the first layer before it loads. Returns all parameters, and the states.
std::vector<float> TrainedFrom(std::optional<std::uint64_t> seed, int ranks,
                               const MakeOptimizer& make,
                               const std::string& path, int from, int to,
                               bool restless) {
  std::vector<float> result;
  const Program program = [&](Rank& rank) {
    auto model = rank.Make<Either>();
    DDP ddp(model);
    const std::unique_ptr<Optimizer> optimizer = make(ddp);
    const auto step = [&](bool uses_second) {
      model->uses_second = uses_second;
      optimizer->ZeroGrad();
      nn::MeanSquaredError(ddp(rank.Randn({4, 10})), rank.Randn({4, 5}))
          .Backward();
      optimizer->Step();
    };
    State state;
    state.Add(ddp).Add(*optimizer);
    if (from > 0) {
      if (restless) step(/*uses_second=*/true);
      Load(state, path);
    }
    for (int i = from; i < to; ++i) {
      step(/*uses_second=*/i % 3 != 0 && rank.number() == i % ranks);
    }
    Barrier(rank);
    if (rank.number() != 0) return;
    if (to < 6) Save(state, path);
    for (const StateEntry& entry : state.entries()) {
      if (!entry.tensor.defined()) continue;
      const auto span = entry.tensor.span<float>();
      result.insert(result.end(), span.begin(), span.end());
    }
  };
  const absl::Status status =
      seed.has_value() ? Simulate(program, Ranks(ranks), {*seed}).status
                       : Spawn(program, Ranks(ranks));
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

template <typename Rule, typename Options>
MakeOptimizer Makes(const Options& options) {
  return [options](const Trainable& model) {
    return std::make_unique<Rule>(model, options);
  };
}

// Each parameter has its own number of updates, on which Adam's bias
// corrections and the first dampened update of SGD depend.
TEST(UnusedParametersTest, ARunThatIsLoadedCountsWhatWasLeftOut) {
  SgdOptions dampened{/*lr=*/0.05, /*momentum=*/0.9, /*dampening=*/0.5};
  AdamOptions adam;
  adam.lr = 0.01;
  AdamOptions skipping = nn::AdamWDefaults();
  skipping.lr = 0.01;
  skipping.common.skip_nonfinite = true;
  const std::vector<MakeOptimizer> rules = {
      Makes<Sgd>(dampened), Makes<Adam>(adam), Makes<Adam>(skipping),
      Makes<Lamb>(nn::LambOptions())};
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    for (const int ranks : {1, 2}) {
      SCOPED_TRACE(absl::StrCat("rule ", rule, " on ", ranks));
      const std::string path =
          absl::StrCat(testing::TempDir(), "/left_out_", rule, "_", ranks);
      const auto train = [&](int from, int to, bool restless = false,
                             std::optional<std::uint64_t> seed = {}) {
        return TrainedFrom(seed, ranks, rules[rule], path, from, to, restless);
      };
      const std::vector<float> whole = train(0, 6);
      train(0, 3);
      ASSERT_FALSE(whole.empty());
      EXPECT_EQ(train(3, 6), whole);
      EXPECT_EQ(train(3, 6, /*restless=*/true), whole);
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        EXPECT_EQ(train(3, 6, seed % 2 == 1, seed), whole) << seed;
      }
      // A file saved by a run that was loaded.
      train(3, 4);
      EXPECT_EQ(train(4, 6), whole);
    }
  }
}

TEST(UnusedParametersTest, FilesHaveTheCountsThatDiffer) {
  const std::string path = absl::StrCat(testing::TempDir(), "/counts");
  const Program program = [&path](Rank& rank) {
    auto model = rank.Make<Either>();
    Adam adam(model, AdamOptions());
    const auto step = [&](bool uses_second) {
      model->uses_second = uses_second;
      adam.ZeroGrad();
      nn::Sum(model(rank.Ones({1, 10}))).Backward();
      adam.Step();
    };
    const auto counts = [&path] {
      base::PosixFileSystem files;
      const auto file = base::OrThrow(nn::SafetensorsFile::Open(files, path));
      nn::CachingAllocator memory;
      std::string text;
      for (const nn::SafetensorsEntry& entry : file.entries()) {
        if (!absl::EndsWith(entry.name, "weight.step")) continue;
        EXPECT_EQ(entry.ToString(), "f64[]");
        const Tensor count = base::OrThrow(file.Read(entry.name, memory));
        absl::StrAppend(&text, entry.name, "=", count.data<double>()[0], " ");
      }
      return text;
    };
    State state;
    state.Add(adam);
    Save(state, path);
    EXPECT_EQ(counts(), "");
    for (const bool uses_second : {false, true, false}) step(uses_second);
    Save(state, path);
    EXPECT_EQ(counts(),
              "optimizer.first.weight.step=2 optimizer.second.weight.step=1 "
              "optimizer.unused.weight.step=0 ");

    // A file without them has updated all parameters in every step.
    auto other = rank.Make<Either>();
    Adam both(other, AdamOptions());
    Save(State().Add(both), path);
    Load(state, path);
    Save(state, path);
    EXPECT_EQ(counts(), "");
    step(/*uses_second=*/true);
    Save(state, path);
    EXPECT_EQ(counts(),
              "optimizer.first.weight.step=0 optimizer.unused.weight.step=0 ");

    // Without the optimizer in the file, it stays as it is.
    Save(State().Add("epoch", 1), path);
    StateOptions loose;
    loose.strict = false;
    Load(state, path, loose);
    Save(state, path);
    EXPECT_EQ(counts(),
              "optimizer.first.weight.step=0 optimizer.unused.weight.step=0 ");

    // A number that no run has.
    State wrong;
    for (const StateEntry& entry : state.entries()) {
      if (entry.tensor.defined()) wrong.Add(entry.names[0], entry.tensor);
    }
    wrong.Add("optimizer.step", 3).Add("optimizer.draws", 3);
    wrong.Add("optimizer.lr", 0.1).Add("optimizer.lr_is_set", false);
    wrong.Add("optimizer.first.weight.step", 4.0);
    Save(wrong, path);
    EXPECT_THAT(base::Try([&] { Load(state, path); }).ToString(),
                HasSubstr("has updated a parameter 4 times in 3 updates"));
  };
  const absl::Status status = Spawn(program, Ranks(1));
  EXPECT_TRUE(status.ok()) << status;
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
