// A dynamic loss scale in jobs: steps whose gradients overflow change nothing
// on any rank, and the other steps equal those of a job that never overflows.

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "actors/job.h"
#include "data/subset.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "tests/actors/jobs/queued_job.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// A loss scale with which gradients overflow f32.
constexpr double kTooLarge = 0x1p127;

OptimizerFactory SgdOf() {
  return [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.02;
    sgd.momentum = 0.9;
    sgd.dampening = 0.5;  // makes the first update differ from others
    sgd.common.skip_nonfinite = true;
    sgd.common.ema_decay = 0.9;
    return std::make_unique<nn::Sgd>(sgd);
  };
}

OptimizerFactory AdamOf() {
  return [] {
    nn::AdamOptions adam;
    adam.lr = 0.01;
    adam.common.skip_nonfinite = true;
    return std::make_unique<nn::Adam>(adam);
  };
}

// Returns a job whose steps all have all samples, so that a later step makes up
// for one that is skipped.
JobSpec SameSamplesJob(int dp, int pp, OptimizerFactory optimizer,
                       std::int64_t steps) {
  JobSpec spec = TinyCnnJob(dp, steps);
  spec.train = *data::MakeSubset(spec.train, 0, 64);
  spec.shuffle = false;
  spec.plan.global_batch_size = 64;
  spec.optimizer = std::move(optimizer);
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp > 1) {
    spec.plan.cuts = {6};
    spec.plan.micro_batch_size = 16;
  }
  return spec;
}

void MakeDynamic(JobSpec& spec, double first, std::int64_t interval) {
  spec.loss_scale = first;
  spec.dynamic_loss_scale.emplace().growth_interval = interval;
}

std::int64_t SkippedIn(const Reports& reports) {
  return std::count_if(reports.steps.begin(), reports.steps.end(),
                       [](const StepReport& step) { return step.skipped; });
}

std::vector<std::pair<double, bool>> ScalesOf(const Reports& reports) {
  std::vector<std::pair<double, bool>> scales;
  for (const StepReport& step : reports.steps) {
    scales.emplace_back(step.loss_scale, step.skipped);
  }
  return scales;
}

// Expects the scale of each step to follow from the steps before.
void ExpectTheRule(const Reports& reports, double first,
                   std::int64_t interval) {
  nn::LossScaleState state;
  state.scale = first;
  nn::LossScaleRule rule;
  rule.growth_interval = interval;
  for (const StepReport& step : reports.steps) {
    EXPECT_EQ(step.loss_scale, state.scale) << step.step;
    nn::StepScalars scalars;
    scalars.non_finite = step.skipped;
    state.Update(rule, scalars);
  }
}

// Expects a job that overflows at first, and perhaps once more when gradients
// grow, to equal one without a scale in all other steps.
void ExpectSkippedStepsToChangeNothing(int dp, int pp,
                                       const OptimizerFactory& optimizer) {
  JobSpec spec = SameSamplesJob(dp, pp, optimizer, /*steps=*/16);
  const Reports plain = ReportsOf(spec);
  EXPECT_EQ(SkippedIn(plain), 0);
  MakeDynamic(spec, kTooLarge, /*interval=*/1000);
  const Reports scaled = ReportsOf(spec);
  ExpectTheRule(scaled, kTooLarge, 1000);
  const std::int64_t skipped = SkippedIn(scaled);
  ASSERT_GT(skipped, 0);
  ASSERT_LT(skipped, 13) << "too few steps are left";
  const std::vector<double> losses = scaled.losses(), want = plain.losses();
  EXPECT_TRUE(scaled.steps[0].skipped);
  std::int64_t updates = 0;
  for (std::int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(losses[i], want[updates]) << i;
    updates += scaled.steps[i].skipped ? 0 : 1;
  }
}

TEST(DynamicLossScaleTest, SkippedStepsChangeNothing) {
  ExpectSkippedStepsToChangeNothing(1, 1, SgdOf());
  ExpectSkippedStepsToChangeNothing(1, 1, AdamOf());
}

TEST(DynamicLossScaleTest, NorWithReplicas) {
  ExpectSkippedStepsToChangeNothing(2, 1, AdamOf());
}

TEST(DynamicLossScaleTest, NorWithStages) {
  ExpectSkippedStepsToChangeNothing(1, 2, AdamOf());
  ExpectSkippedStepsToChangeNothing(2, 2, SgdOf());
}

TEST(DynamicLossScaleTest, GrowsAndChangesNoBit) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/9);
  spec.optimizer = AdamOf();
  const Reports plain = ReportsOf(spec);
  MakeDynamic(spec, 1024, /*interval=*/2);
  const Reports scaled = ReportsOf(spec);
  EXPECT_EQ(scaled.losses(), plain.losses());
  EXPECT_EQ(SkippedIn(scaled), 0);
  ExpectTheRule(scaled, 1024, 2);
  EXPECT_EQ(scaled.steps.back().loss_scale, 16384);
}

TEST(DynamicLossScaleTest, TrainsInF16) {
  constexpr double kFirst = 0x1p18;
  const OptimizerFactory sgd_of = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.02;
    sgd.momentum = 0.9;
    sgd.common.f32_master = true;
    sgd.common.skip_nonfinite = true;
    return std::make_unique<nn::Sgd>(sgd);
  };
  JobSpec spec = SameSamplesJob(/*dp=*/2, /*pp=*/1, sgd_of, /*steps=*/24);
  UseDType(nn::DType::kF16, spec);
  MakeDynamic(spec, kFirst, /*interval=*/10);
  const Reports reports = ReportsOf(spec);
  ExpectTheRule(reports, kFirst, 10);
  EXPECT_GT(SkippedIn(reports), 0);
  EXPECT_LT(SkippedIn(reports), 20);
  EXPECT_LT(reports.losses().back(), reports.losses().front());
}

// The scale overflows and grows back repeatedly, before and after the
// checkpoint.
TEST(DynamicLossScaleTest, GoesOnToTheBit) {
  for (const int pp : {1, 2}) {
    JobSpec whole = SameSamplesJob(/*dp=*/2, pp, AdamOf(), /*steps=*/16);
    MakeDynamic(whole, kTooLarge, /*interval=*/2);
    whole.checkpoint.dir = FreshFolder("whole");
    const Reports want = ReportsOf(whole);
    ASSERT_GT(SkippedIn(want), 0);
    ASSERT_LT(SkippedIn(want), 14);
    for (const std::int64_t at : {3, 11, 12}) {
      JobSpec first = whole;
      first.checkpoint.dir = FreshFolder("parts");
      first.steps = at;
      const Reports before = ReportsOf(first);
      JobSpec second = whole;
      second.checkpoint.dir = first.checkpoint.dir;
      second.checkpoint.resume = true;
      const Reports behind = ReportsOf(second);
      Reports joined = before;
      joined.steps.insert(joined.steps.end(), behind.steps.begin(),
                          behind.steps.end());
      EXPECT_EQ(joined.losses(), want.losses()) << at;
      EXPECT_EQ(ScalesOf(joined), ScalesOf(want)) << at;
    }
  }
}

// A checkpoint without the state of the scaler is an error, unless that is
// allowed, as for a state of the optimizer.
TEST(DynamicLossScaleTest, ACheckpointWithoutItsState) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/2);
  spec.optimizer = AdamOf();
  spec.checkpoint.dir = FreshFolder("static");
  ReportsOf(spec);
  spec.steps = 4;
  spec.checkpoint.resume = true;
  MakeDynamic(spec, 8, /*interval=*/1000);
  const std::string message(RunJob(spec).status().message());
  EXPECT_NE(message.find("missing from the checkpoint: loss_scaler"),
            std::string::npos)
      << message;
  spec.checkpoint.allow_missing = true;
  EXPECT_EQ(ReportsOf(spec).steps.front().loss_scale, 8);
}

TEST(DynamicLossScaleTest, EndsTheJobBelowItsLeast) {
  for (const int dp : {1, 2}) {
    JobSpec spec = SameSamplesJob(dp, /*pp=*/1, AdamOf(), /*steps=*/16);
    MakeDynamic(spec, 0x1p127, /*interval=*/1000);
    spec.dynamic_loss_scale->min = 0x1p126;
    const absl::Status status = RunJob(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find(
                  "the gradients of step 2 are not finite with the loss scale "
                  "8.50706e+37, and half of it is below LossScaleRule.min = "
                  "8.50706e+37; lower the learning rate"),
              absl::string_view::npos)
        << status;
  }
}

TEST(DynamicLossScaleTest, IsRefusedWhereItHasNoMeaning) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1);
  MakeDynamic(spec, 8, /*interval=*/0);
  EXPECT_EQ(RunJob(spec).status().message(),
            "LossScaleRule.growth_interval = 0: must be at least 1");
  MakeDynamic(spec, 8, /*interval=*/1);
  spec.dynamic_loss_scale->min = 16;
  EXPECT_EQ(RunJob(spec).status().message(),
            "LossScaleRule.min = 16: must be above 0 and at most "
            "JobSpec.loss_scale = 8");
  spec.dynamic_loss_scale->min = 1;
  EXPECT_EQ(RunJob(spec).status().message(),
            "JobSpec.dynamic_loss_scale is for an optimizer that skips steps; "
            "set OptimizerOptions.skip_nonfinite = true");
}

// --- Simulated ---

JobSpec SmallScaledJob(const std::function<void(JobSpec&)>& edit) {
  SmallJobOptions options;
  options.ranks = 2;
  options.steps = 16;
  JobSpec spec = SmallJob(options);
  spec.optimizer = AdamOf();
  MakeDynamic(spec, kTooLarge, /*interval=*/2);
  if (edit) edit(spec);
  return spec;
}

void ExpectOneOutcomeUnderEverySeed(const JobSpec& spec, std::uint64_t seeds) {
  const SimulatedRun want = Simulate(spec, {});
  ASSERT_TRUE(want.result.ok()) << want.result.status();
  ASSERT_GT(SkippedIn(want.reports), 0);
  ASSERT_LT(SkippedIn(want.reports), 16);
  for (std::uint64_t seed : Seeds(seeds)) {
    const SimulatedRun run = Simulate(spec, seed);
    ASSERT_TRUE(run.result.ok()) << run.result.status() << ReplayCommand(seed);
    ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
    ASSERT_EQ(ScalesOf(run.reports), ScalesOf(want.reports))
        << ReplayCommand(seed);
  }
}

TEST(DynamicLossScaleTest, SimulatedReplicas) {
  ExpectOneOutcomeUnderEverySeed(SmallScaledJob(nullptr), 200);
}

TEST(DynamicLossScaleTest, SimulatedStages) {
  const auto stages = [](JobSpec& spec) {
    spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
    spec.plan.cuts = {2};
    spec.plan.micro_batch_size = 3;
  };
  ExpectOneOutcomeUnderEverySeed(SmallScaledJob(stages), 100);
}

// The middle stage is a ReLU alone: it updates nothing, but uses the same scale
// as the others.
TEST(DynamicLossScaleTest, SimulatedStageWithoutParameters) {
  const auto stages = [](JobSpec& spec) {
    spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/3);
    spec.plan.cuts = {1, 2};
    spec.plan.micro_batch_size = 4;
  };
  ExpectOneOutcomeUnderEverySeed(SmallScaledJob(stages), 100);
}

TEST(DynamicLossScaleTest, OnDevicesThatWorkLater) {
  for (const int pp : {1, 2}) {
    JobSpec spec = SameSamplesJob(/*dp=*/2, pp, AdamOf(), /*steps=*/14);
    MakeDynamic(spec, kTooLarge, /*interval=*/2);
    const Outcome want = OnTheCpu(spec);
    ASSERT_TRUE(want.status.ok()) << want.status;
    ASSERT_GT(SkippedIn(want.reports), 0);
    ASSERT_LT(SkippedIn(want.reports), 14);
    for (std::uint64_t seed : Seeds(6)) {
      const Outcome outcome = OnQueuedDevices(spec, seed);
      ASSERT_TRUE(outcome == want) << outcome.status << ReplayCommand(seed);
      ASSERT_EQ(ScalesOf(outcome.reports), ScalesOf(want.reports))
          << ReplayCommand(seed);
    }
  }
}

}  // namespace
}  // namespace troupe::actors
