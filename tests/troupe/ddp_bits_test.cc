// Loops of one's own have the bits of their job, in threads and under seeds.

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "actors/job.h"
#include "data/registry.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "tests/base/seeds.h"
#include "tests/troupe/ranks.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

constexpr int kSteps = 6;
constexpr int kBatch = 16;
constexpr int kSeeds = 200;

// The dataset is drawn once.
data::DatasetPtr Glyphs() {
  static const data::DatasetPtr* const glyphs = [] {
    data::DatasetOptions options;
    options.kind = "glyphs";
    return new data::DatasetPtr(data::OpenDataset(options)->train);
  }();
  return *glyphs;
}

// Results of a run, on rank 0.
struct Trained {
  std::vector<double> losses;
  std::vector<float> parameters;  // the first layer's, after the last step
};

enum class Rule { kSgd, kAdamW };

// The loop, on each rank.
Program Loop(Rule rule, Trained* run, int micro_batches = 1,
             const DDPOptions& edited = {}, bool step_in_backward = false) {
  return [=](Rank& rank) {
    auto model = rank.Place(nn::MakeMlp({784, 24, 10}, {}));
    DDPOptions options = edited;
    options.first_bucket_mb = 0.001;
    options.bucket_cap_mb = 0.02;
    DDP ddp(model, options);
    std::optional<Optimizer> optimizer;
    if (rule == Rule::kSgd) {
      optimizer.emplace(Sgd(ddp, {/*lr=*/0.02, /*momentum=*/0.9}));
    } else {
      optimizer.emplace(Adam(ddp, nn::AdamWDefaults()));
    }
    if (step_in_backward) ddp.StepInBackward(*optimizer);
    DataLoader loader(rank, Glyphs(),
                      {kBatch / rank.size() / micro_batches, /*shuffle=*/true});
    int step = 0, micro_batch = 0;
    double sum = 0;
    for (auto [x, y] : loader) {
      if (micro_batch == 0) {
        optimizer->ZeroGrad();
        sum = 0;
      }
      const bool last = ++micro_batch == micro_batches;
      Var loss;
      if (last) {
        loss = nn::CrossEntropy(ddp(x.Flatten()), y);
        // A backward with exact_mean begins at a loss.
        const Var root =
            options.exact_mean ? loss : loss.Mean() / micro_batches;
        root.Backward();
      } else {
        auto unsynced = ddp.NoSync();
        loss = nn::CrossEntropy(ddp(x.Flatten()), y);
        (loss.Mean() / micro_batches).Backward();
      }
      AllReduce(loss, ReduceOp::kAvg);
      sum += loss.item();
      if (!last) continue;
      micro_batch = 0;
      optimizer->Step();
      if (rank.number() == 0) run->losses.push_back(sum / micro_batches);
      if (++step == kSteps) break;
    }
    if (rank.number() != 0) return;
    const Tensor& weight = ddp.Parameters()[0]->value;
    run->parameters.assign(weight.data<float>(),
                           weight.data<float>() + weight.numel());
  };
}

// The losses of the same job.
std::vector<double> JobLosses(
    Rule rule, int ranks,
    std::optional<nn::DType> reduction_dtype = std::nullopt) {
  struct Keep : actors::JobObserver {
    void OnSteps(absl::Span<const actors::StepReport> steps) override {
      for (const auto& step : steps) losses.push_back(step.loss);
    }
    std::vector<double> losses;
  } keep;
  actors::JobSpec spec;
  spec.train = Glyphs();
  spec.model = [] { return nn::MakeMlp({784, 24, 10}, {}); };
  spec.loss = nn::ops::CrossEntropyLoss();
  if (rule == Rule::kSgd) {
    spec.optimizer = nn::SgdOptions{0.02, 0.9};
  } else {
    spec.optimizer = nn::AdamWDefaults();
  }
  spec.plan.mesh = pipeline::Mesh(ranks);
  spec.plan.reduction_dtype = reduction_dtype;
  spec.plan.global_batch_size = kBatch;
  spec.steps = kSteps;
  const auto result = actors::RunJob(spec, &keep);
  EXPECT_TRUE(result.ok()) << result.status();
  return keep.losses;
}

// Ranks reduce gradients themselves, or their communication strands do.
constexpr std::int64_t kAlwaysInline = std::numeric_limits<std::int64_t>::max();

TEST(DdpBitsTest, ALoopHasTheLossesOfItsJob) {
  for (const Rule rule : {Rule::kSgd, Rule::kAdamW}) {
    for (const int ranks : {1, 2, 4}) {
      for (const std::int64_t inline_bytes : {std::int64_t{0}, kAlwaysInline}) {
        SpawnOptions options = Ranks(ranks);
        options.inline_bytes = inline_bytes;
        Trained run;
        const absl::Status status = Spawn(Loop(rule, &run), options);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(run.losses, JobLosses(rule, ranks))
            << ranks << " ranks, inline up to " << inline_bytes;
      }
    }
  }
}

TEST(DdpBitsTest, GradientsAreRoundedAsInTheJob) {
  for (const bool exact_mean : {true, false}) {
    for (const nn::DType dtype : {nn::DType::kBF16, nn::DType::kF32}) {
      DDPOptions options;
      options.exact_mean = exact_mean;
      options.reduction_dtype = dtype;
      Trained run;
      const absl::Status status =
          Spawn(Loop(Rule::kSgd, &run, /*micro_batches=*/1, options), Ranks(2));
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(run.losses, JobLosses(Rule::kSgd, 2, dtype));
      EXPECT_EQ(run.losses == JobLosses(Rule::kSgd, 2),
                dtype == nn::DType::kF32);
    }
  }
}

TEST(DdpBitsTest, StepsInBackwardHaveTheSameBits) {
  for (const Rule rule : {Rule::kSgd, Rule::kAdamW}) {
    for (const int ranks : {1, 2}) {
      for (const bool exact_mean : {false, true}) {
        DDPOptions options;
        options.exact_mean = exact_mean;
        Trained want, have;
        ASSERT_TRUE(Spawn(Loop(rule, &want, 1, options), Ranks(ranks)).ok());
        const Program program =
            Loop(rule, &have, 1, options, /*step_in_backward=*/true);
        const absl::Status status = Spawn(program, Ranks(ranks));
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(have.losses, want.losses);
        EXPECT_EQ(have.parameters, want.parameters);
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          have = {};
          const SimulatedRun run = Simulate(program, Ranks(ranks), {seed});
          ASSERT_TRUE(run.status.ok()) << run.status;
          EXPECT_EQ(have.parameters, want.parameters) << "seed " << seed;
        }
      }
    }
  }
}

// Messages take time: a seed chooses both the order of the ranks, which share a
// thread, and the delays. 1,000 seeds of each: TROUPE_SIM_TIMES=5.
TEST(DdpBitsTest, SeedsChangeNoBit) {
  for (const int ranks : {2, 4}) {
    Trained threads;
    ASSERT_TRUE(Spawn(Loop(Rule::kSgd, &threads), Ranks(ranks)).ok());
    const std::vector<double> job = JobLosses(Rule::kSgd, ranks);
    std::set<std::uint64_t> traces;
    for (const std::uint64_t seed : Seeds(kSeeds)) {
      Trained run;
      SpawnOptions options = Ranks(ranks);
      options.inline_bytes = seed % 2 == 0 ? 0 : kAlwaysInline;
      const SimulatedRun simulated =
          Simulate(Loop(Rule::kSgd, &run), options,
                   {seed, /*message_time_max=*/absl::Milliseconds(10)});
      ASSERT_TRUE(simulated.status.ok())
          << simulated.status << ReplayCommand(seed);
      ASSERT_EQ(run.losses, job) << ranks << " ranks" << ReplayCommand(seed);
      ASSERT_EQ(run.parameters, threads.parameters)
          << ranks << " ranks" << ReplayCommand(seed);
      traces.insert(simulated.trace_hash);
    }
    EXPECT_GT(2 * traces.size(), Seeds(kSeeds).size()) << "seeds act alike";
  }
}

// Micro-batches under NoSync() add up to the whole batch.
TEST(DdpBitsTest, NoSyncAddsUp) {
  Trained whole, parts;
  ASSERT_TRUE(Spawn(Loop(Rule::kSgd, &whole), Ranks(2)).ok());
  const absl::Status status =
      Spawn(Loop(Rule::kSgd, &parts, /*micro_batches=*/2), Ranks(2));
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(parts.losses.size(), whole.losses.size());
  for (int i = 0; i < kSteps; ++i) {
    // The samples of a rank's second half are another rank's in one batch.
    EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace troupe
