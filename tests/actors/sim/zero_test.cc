// Tests ZeRO: each replica has the optimizer's states for one slice of each
// bucket, updates it and gathers those of the others: behind the updates, or at
// stage 3 before each use of the values. From stage 2 on it keeps reduced
// gradients for that slice alone. The parameters have the bits of replicas that
// each have everything.

#include <errno.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/checkpoint/claim.h"
#include "actors/checkpoint/layout.h"
#include "data/subset.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "pipeline/plan_choices.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/deep_models.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"
#include "tests/base/faulty_file_system.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using MakeOptimizerFn = decltype(JobSpec::optimizer);

MakeOptimizerFn AdamWith(const nn::OptimizerOptions& common) {
  return [common] {
    nn::AdamOptions adam = nn::AdamWDefaults();
    adam.lr = 0.01;
    adam.common = common;
    return std::make_unique<nn::Adam>(adam);
  };
}

JobSpec SpecOf(int dp, int pp, int stage, std::int64_t steps = 3) {
  JobSpec spec = SmallJob({dp, Numbers::kFloat, steps, /*fused=*/false,
                           /*momentum=*/0.9});
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp == 2) spec.plan.cuts = {2};
  spec.plan.zero_stage = stage;
  return spec;
}

constexpr int kStages[] = {1, 2, 3};

// Gives each replica one micro-batch a step: only then stage 2 has the bits of
// others without `zero_accumulates_whole`.
void SetOneMicroBatch(JobSpec& spec) { spec.plan.micro_batch_size = 0; }

// Runs the job under stage 0 and under all others.
void ExpectTheBitsOfWholeStates(JobSpec spec, std::uint64_t seeds) {
  spec.plan.zero_stage = 0;
  const SimulatedRun want = Simulate(spec, std::uint64_t{0});
  ASSERT_EQ(want.check, absl::OkStatus());
  for (const int stage : kStages) {
    SCOPED_TRACE(absl::StrCat("stage ", stage));
    spec.plan.zero_stage = stage;
    for (const std::uint64_t seed : Seeds(seeds)) {
      const SimulatedRun run = Simulate(spec, seed);
      ASSERT_EQ(run.check, absl::OkStatus()) << "seed " << seed;
      ASSERT_EQ(Difference(run, want), "") << "seed " << seed;
    }
  }
}

// The same with one micro-batch, and with several whose gradients are kept.
void ExpectTheBitsOfDdp(JobSpec spec, std::uint64_t seeds) {
  spec.plan.zero_accumulates_whole = true;
  ExpectTheBitsOfWholeStates(spec, seeds);
  spec.plan.zero_accumulates_whole = false;
  SetOneMicroBatch(spec);
  ExpectTheBitsOfWholeStates(spec, seeds);
}

TEST(ZeroTest, HasTheBitsOfWholeStates) {
  for (const int pp : {1, 2}) {
    for (const int dp : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE(absl::StrCat("dp ", dp, ", pp ", pp));
      JobSpec spec = SpecOf(dp, pp, 1);
      if (dp == 8) spec.plan.micro_batch_size = 1;
      ExpectTheBitsOfDdp(spec, 10);
      nn::OptimizerOptions common;
      common.ema_decay = 0.9;
      spec.optimizer = AdamWith(common);
      ExpectTheBitsOfDdp(spec, 10);
    }
  }
}

// Whatever is ahead of the part that runs, and for several micro-batches.
TEST(ZeroTest, GathersAheadHaveTheBitsOfWholeValues) {
  for (const int pp : {1, 2}) {
    for (const std::int64_t ahead : {0, 200, 1 << 20}) {
      for (const bool keep : {false, true}) {
        SCOPED_TRACE(absl::StrCat("pp ", pp, ", ", ahead, " bytes ahead",
                                  keep ? ", kept" : ""));
        JobSpec spec = SpecOf(3, pp, 3);
        spec.plan.micro_batch_size = 2;
        spec.plan.zero_accumulates_whole = true;
        spec.plan.zero_ahead_bytes = ahead;
        spec.plan.zero_keep = keep;
        ExpectTheBitsOfWholeStates(spec, 10);
      }
    }
  }
}

// The first replica has a batch of the test set more than others, which have
// one or none, and each batch gathers.
TEST(ZeroTest, EvaluatesWhatGathersBeforeItsUses) {
  for (const int dp : {2, 3, 4}) {
    for (const int more : {1, 6 * dp + 1}) {
      SCOPED_TRACE(absl::StrCat("dp ", dp, ", ", more, " samples"));
      JobSpec spec = SpecOf(dp, 1, 3);
      spec.test = *data::MakeSubset(spec.train, 0, more);
      spec.eval_every = 1;
      spec.plan.micro_batch_size = 6;
      spec.plan.zero_accumulates_whole = true;
      ExpectTheBitsOfWholeStates(spec, 10);
    }
  }
}

TEST(ZeroTest, HasTheBitsOfWholeStatesWhereReductionsAreInline) {
  JobSpec spec = SpecOf(4, 1, 1);
  spec.plan.inline_bytes = 1 << 30;
  ExpectTheBitsOfDdp(spec, 50);
}

TEST(ZeroTest, HasTheBitsOfWholeStatesIfGradientsAreReducedInAnotherDType) {
  JobSpec spec = SpecOf(3, 1, 1);
  spec.plan.reduction_dtype = nn::DType::kBF16;
  ExpectTheBitsOfDdp(spec, 50);
}

// Each micro-batch is reduced into the slices. All sums are exact here, so that
// their order does not show.
JobSpec ExactMicroBatches(int dp, const std::string& schedule) {
  JobSpec spec = SmallJob({dp, Numbers::kExact});
  spec.plan.micro_batch_size = 2;
  if (schedule.empty()) return spec;
  spec.plan.mesh = pipeline::Mesh(dp, /*pp=*/2);
  spec.plan.cuts = {2};
  EXPECT_EQ(pipeline::SetSchedule(schedule, spec.plan), absl::OkStatus());
  return spec;
}

TEST(ZeroTest, AddsUpTheSlicesOfMicroBatches) {
  for (const char* schedule : {"", "1f1b", "zb_h1", "zb_h2"}) {
    for (const int dp : {2, 3, 4}) {
      SCOPED_TRACE(absl::StrCat("dp ", dp, ", schedule ", schedule));
      ExpectTheBitsOfWholeStates(ExactMicroBatches(dp, schedule), 20);
    }
  }
}

// A seed chooses the pipeline, and what its ranks gather ahead and keep.
TEST(ZeroTest, PipelinesThatGatherHaveTheBitsOfWholeValues) {
  const std::string schedules[] = {"gpipe", "1f1b", "zb_h1", "zb_h2"};
  const std::int64_t aheads[] = {0, 200, 1 << 20};
  std::map<std::pair<int, std::string>, SimulatedRun> wants;
  for (const std::uint64_t seed : Seeds(60)) {
    const int dp = 2 + static_cast<int>(seed % 3);
    const std::string& schedule = schedules[seed / 3 % 4];
    JobSpec spec = ExactMicroBatches(dp, schedule);
    const auto [want, is_new] = wants.try_emplace({dp, schedule});
    if (is_new) want->second = Simulate(spec, std::uint64_t{0});
    spec.plan.zero_stage = 3;
    spec.plan.zero_ahead_bytes = aheads[seed / 12 % 3];
    spec.plan.zero_keep = seed / 36 % 2 == 1;
    spec.plan.zero_accumulates_whole = seed / 72 % 2 == 1;
    const SimulatedRun run = Simulate(spec, seed);
    ASSERT_EQ(run.check, absl::OkStatus()) << ReplayCommand(seed);
    ASSERT_EQ(Difference(run, want->second), "") << ReplayCommand(seed);
  }
}

// Ranks launch all collectives in one order (CheckInvariants()), though a round
// may end before or after the last forward, and buckets that stages share may
// be complete before or after the others' rounds. Gathers of values between
// them change no bits.
TEST(ZeroTest, RoundsAndLossesAreLaunchedInOneOrder) {
  for (const int pp : {1, 2, 4}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(absl::StrCat("pp ", pp, tied ? ", tied" : ""));
      const DeepModel gpt = SmallGpt(/*tie_head=*/tied);
      JobSpec spec = gpt.Job(pipeline::Mesh(/*dp=*/2, pp), /*micro_batches=*/6);
      spec.plan.cuts = *gpt.Cuts(pp);
      spec.plan.buckets.bucket_bytes = 1000;
      spec.plan.zero_stage = 2;
      const SimulatedRun want = Simulate(spec, std::uint64_t{0});
      ASSERT_EQ(want.check, absl::OkStatus());
      for (const std::uint64_t seed : Seeds(20)) {
        spec.plan.zero_stage = 2 + static_cast<int>(seed % 2);
        spec.plan.zero_keep = seed % 4 == 3;
        const SimulatedRun run = Simulate(spec, seed);
        ASSERT_EQ(run.check, absl::OkStatus()) << ReplayCommand(seed);
        ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
      }
    }
  }
}

TEST(ZeroTest, AddsUpTheSlicesWhereReductionsAreInline) {
  JobSpec spec = SmallJob({/*ranks=*/4, Numbers::kExact});
  spec.plan.inline_bytes = 1 << 30;
  ExpectTheBitsOfWholeStates(spec, 40);
}

// Several orders of messages give one set of bits where sums are rounded, too,
// and losses that differ from whole gradients' by rounding alone.
TEST(ZeroTest, AddsUpTheSlicesInOneOrder) {
  for (const bool rounds : {false, true}) {
    JobSpec spec = SpecOf(4, 1, 0);
    if (rounds) spec.plan.reduction_dtype = nn::DType::kBF16;
    const SimulatedRun whole = Simulate(spec, std::uint64_t{0});
    spec.plan.zero_stage = 2;
    const SimulatedRun want = Simulate(spec, std::uint64_t{0});
    ASSERT_EQ(want.check, absl::OkStatus());
    for (const std::uint64_t seed : Seeds(50)) {
      const SimulatedRun run = Simulate(spec, seed);
      ASSERT_EQ(run.check, absl::OkStatus()) << "seed " << seed;
      ASSERT_EQ(Difference(run, want), "") << "seed " << seed;
    }
    const std::vector<double> losses = whole.reports.losses();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(want.reports.losses()[i], losses[i],
                  (rounds ? 0.02 : 1e-6) * losses[i]);
    }
  }
}

// Clipping adds up the squares of all slices in another order, in f64, and
// skipped steps are found in any slice.
TEST(ZeroTest, ClipsBySlices) {
  for (const int pp : {1, 2}) {
    JobSpec spec = SpecOf(4, pp, 0);
    SetOneMicroBatch(spec);
    nn::OptimizerOptions common;
    common.clip_grad_norm = 0.01;
    common.skip_nonfinite = true;
    spec.optimizer = AdamWith(common);
    const SimulatedRun want = Simulate(spec, std::uint64_t{0});
    ASSERT_EQ(want.check, absl::OkStatus());
    for (const std::uint64_t seed : Seeds(100)) {
      spec.plan.zero_stage = kStages[seed % std::size(kStages)];
      const SimulatedRun run = Simulate(spec, seed);
      ASSERT_EQ(run.check, absl::OkStatus()) << "seed " << seed;
      const std::vector<double> losses = run.reports.losses();
      ASSERT_EQ(losses.size(), want.reports.losses().size());
      for (std::size_t i = 0; i < losses.size(); ++i) {
        EXPECT_NEAR(losses[i], want.reports.losses()[i], 1e-6);
      }
      // Later steps have parameters that were rounded in another way.
      const double norm = run.reports.steps[0].grad_norm;
      const double want_norm = want.reports.steps[0].grad_norm;
      EXPECT_NEAR(norm, want_norm, 1e-12 * want_norm);
      EXPECT_GT(norm, common.clip_grad_norm);
    }
  }
}

// Returns the losses of a job that goes on with the newest checkpoint in `dir`.
std::vector<double> LossesFrom(const std::string& dir, int dp, int stage,
                               const MakeOptimizerFn& optimizer) {
  JobSpec spec = SpecOf(dp, 1, stage, /*steps=*/6);
  spec.optimizer = optimizer;
  SetOneMicroBatch(spec);
  spec.checkpoint.from = dir;
  const SimulatedRun run = Simulate(spec, std::uint64_t{1});
  EXPECT_EQ(run.check, absl::OkStatus());
  return run.reports.losses();
}

// A checkpoint has whole states, whoever owned them and wrote them, so that any
// number of owners goes on from it.
TEST(ZeroTest, CheckpointsAreThoseOfWholeStates) {
  nn::OptimizerOptions common;
  common.ema_decay = 0.9;
  const MakeOptimizerFn optimizer = AdamWith(common);
  std::vector<std::string> dirs;
  for (const int stage : {0, 1, 2, 3}) {
    dirs.emplace_back();
    JobSpec spec = SpecOf(2, 1, stage);
    spec.optimizer = optimizer;
    SetOneMicroBatch(spec);
    spec.checkpoint.every = 3;
    spec.checkpoint.compare_replicas = true;
    for (const bool in_place : {false, true}) {
      spec.checkpoint.in_place = in_place;
      spec.checkpoint.dir = FreshFolder(
          absl::StrCat("zero_stage_", stage, in_place ? "" : "_gathered"));
      const SimulatedRun run = Simulate(spec, std::uint64_t{7});
      ASSERT_EQ(run.check, absl::OkStatus());
      ASSERT_EQ(run.reports.checkpoints.size(), 1u);
      dirs.back() = run.reports.checkpoints[0];
      for (const char* file : {"/model.safetensors", "/optimizer.safetensors",
                               "/model.safetensors.index.json"}) {
        EXPECT_EQ(FileBytes(dirs.back() + file), FileBytes(dirs[0] + file))
            << file << ", stage " << stage;
      }
    }
  }
  for (const int dp : {2, 4}) {
    for (const int stage : {0, 1, 2, 3}) {
      EXPECT_EQ(LossesFrom(dirs[stage], dp, stage, optimizer),
                LossesFrom(dirs[0], dp, 0, optimizer))
          << "dp " << dp << ", stage " << stage;
    }
  }
}

// The job is stopped at any message, among them those that gather states for a
// checkpoint.
class ZeroStagesTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Stages, ZeroStagesTest, testing::ValuesIn(kStages));

TEST_P(ZeroStagesTest, AResumedRunEndsWithTheBitsOfOneThatWasNotStopped) {
  JobSpec spec = SpecOf(2, 2, GetParam(), /*steps=*/4);
  spec.optimizer = AdamWith({});
  spec.checkpoint.every = 1;
  spec.checkpoint.dir = FreshFolder(absl::StrCat("zero_straight_", GetParam()));
  const SimulatedRun straight = Simulate(spec, std::uint64_t{0});
  ASSERT_EQ(straight.check, absl::OkStatus());
  const std::string last = straight.reports.checkpoints.back();
  int interrupted = 0;
  for (const std::uint64_t seed : Seeds(60)) {
    const ResumedRun run = StopAndResume(
        spec, absl::StrCat("zero_stopped_", GetParam(), "_", seed), seed);
    ASSERT_EQ(run.status(), absl::OkStatus()) << ReplayCommand(seed);
    interrupted += run.first.result->stopped;
    for (int stage = 0; stage < 2; ++stage) {
      for (const char* what : {"model", "optimizer"}) {
        const std::string file = "/" + ShardName(what, stage, 2);
        ASSERT_EQ(FileBytes(run.dir + "/" + CheckpointName(4) + file),
                  FileBytes(last + file))
            << file << ReplayCommand(seed);
      }
    }
  }
  EXPECT_GT(interrupted, 0);
}

// A disk fails, or all processes die, at any moment, also between the writes of
// two owners: each folder with a checkpoint's name has the whole states of its
// step, the newest that was reported is there, and the next run removes the
// rest.
TEST_P(ZeroStagesTest, LosesNothingOnADiskThatFailsAtAnyMoment) {
  JobSpec spec = SpecOf(2, 1, 0);
  SetOneMicroBatch(spec);
  spec.optimizer = AdamWith({});
  spec.checkpoint.every = 1;
  base::FaultyFileSystem counting;
  spec.checkpoint.files = &counting;
  const std::string whole =
      FreshFolder(absl::StrCat("zero_whole_", GetParam()));
  spec.checkpoint.dir = whole;
  spec.checkpoint.keep = 0;
  ASSERT_EQ(Simulate(spec, std::uint64_t{0}).check, absl::OkStatus());
  spec.plan.zero_stage = GetParam();
  base::FaultyFileSystem in_place;
  spec.checkpoint.files = &in_place;
  spec.checkpoint.dir = FreshFolder(absl::StrCat("zero_count_", GetParam()));
  ASSERT_EQ(Simulate(spec, std::uint64_t{0}).check, absl::OkStatus());
  ASSERT_GT(in_place.changes(), counting.changes()) << "there are two writers";
  base::PosixFileSystem plain;
  int failures = 0, checkpoints = 0;
  for (const std::uint64_t seed : Seeds(100)) {
    const int change = static_cast<int>(seed * 7919 % in_place.changes());
    base::FaultyFileSystem files;
    seed % 2 == 0 ? files.CrashAt(change) : files.FailAt(change, ENOSPC);
    spec.checkpoint.files = &files;
    spec.checkpoint.dir = FreshFolder(absl::StrCat("zero_fails_", GetParam()));
    const SimulatedRun run = Simulate(spec, seed);
    failures += !run.result.ok();
    const auto paths = ListCheckpoints(plain, spec.checkpoint.dir);
    ASSERT_EQ(paths.status(), absl::OkStatus());
    if (!run.reports.checkpoints.empty()) {
      ASSERT_GE(paths->back(), run.reports.checkpoints.back());
    }
    ASSERT_EQ(ClaimCheckpoints(plain, spec.checkpoint.dir).status(),
              absl::OkStatus());
    const std::vector<std::string> names =
        plain.List(spec.checkpoint.dir).value();
    for (const std::string& name : names) {
      ASSERT_TRUE(name == kLockName || ParseCheckpointName(name)) << name;
    }
    for (const std::string& path : *paths) {
      const absl::StatusOr<Checkpoint> checkpoint =
          Checkpoint::Open(plain, path);
      ASSERT_EQ(checkpoint.status(), absl::OkStatus()) << ReplayCommand(seed);
      ++checkpoints;
      const std::string of_step =
          absl::StrCat(whole, "/", CheckpointName(checkpoint->state().step));
      for (const char* file :
           {"/model.safetensors", "/optimizer.safetensors"}) {
        ASSERT_EQ(FileBytes(path + file), FileBytes(of_step + file))
            << file << ReplayCommand(seed);
      }
    }
  }
  EXPECT_GT(failures, 0);
  EXPECT_GT(checkpoints, 0);
}

TEST(ZeroTest, RefusesHigherStagesByName) {
  const SimulatedRun run =
      Simulate(SpecOf(2, 1, pipeline::kZeroStageMax + 1), std::uint64_t{0});
  EXPECT_NE(run.result.status().message().find(
                absl::StrCat("zero_stage = ", pipeline::kZeroStageMax + 1)),
            std::string::npos)
      << run.result.status();
}

}  // namespace
}  // namespace troupe::actors
