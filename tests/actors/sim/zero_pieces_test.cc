// Tests ZeRO together with tensor parallelism: the replicas of each place along
// tp share the states, gradients and values of its pieces. Stage 0 on the same
// mesh is the judge of bits, one rank that of norms.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "pipeline/plan.h"
#include "tests/actors/sim/divided_jobs.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

constexpr int kStagesOfPieces[] = {1, 2, 3};

// AdamW with averages, whose bits do not depend on the order of a norm's sum.
MakeOptimizerFn AdamOfSlices() {
  return [] {
    nn::AdamOptions adam = nn::AdamWDefaults();
    adam.lr = 0.01;
    adam.common.ema_decay = 0.9;
    adam.common.skip_nonfinite = true;
    return std::make_unique<nn::Adam>(adam);
  };
}

MakeOptimizerFn SgdOfSlices() {
  return nn::SgdOptions{/*lr=*/0.1, /*momentum=*/0.9};
}

// Has several buckets of pieces and of copies.
JobSpec GptOfSlices(const Layout& layout, const MakeOptimizerFn& optimizer,
                    bool whole = true) {
  JobSpec spec = GptJob(layout, optimizer);
  spec.steps = 3;
  spec.plan.buckets.bucket_bytes = 2000;
  // Where each micro-batch is reduced, one alone has the bits of stage 0.
  spec.plan.zero_accumulates_whole = whole;
  if (!whole) spec.plan.micro_batch_size = 0;
  spec.plan.inline_bytes = 0;
  spec.test = spec.train;
  spec.eval_every = 3;
  return spec;
}

TEST(ZeroPiecesTest, HasTheBitsOfStageZero) {
  for (Layout layout : {Layout{2, 2, 1}, Layout{2, 2, 2}}) {
    for (const bool whole : {true, false}) {
      for (const MakeOptimizerFn& optimizer : {SgdOfSlices(), AdamOfSlices()}) {
        layout.zero = 0;
        const SimulatedRun want =
            Simulate(GptOfSlices(layout, optimizer, whole), std::uint64_t{0});
        ASSERT_EQ(want.check, absl::OkStatus());
        ASSERT_EQ(want.reports.evaluations.size(), 1u);
        for (layout.zero = 1; layout.zero <= 3; ++layout.zero) {
          const JobSpec spec = GptOfSlices(layout, optimizer, whole);
          for (const std::uint64_t seed : Seeds(2)) {
            ASSERT_EQ(Difference(Simulate(spec, seed), want), "")
                << layout.ToString() << (whole ? ", whole" : "")
                << ReplayCommand(seed);
          }
        }
      }
    }
  }
}

// Each micro-batch is reduced into the slices of pieces. All sums are exact.
TEST(ZeroPiecesTest, AddsUpTheSlicesOfMicroBatches) {
  for (Layout layout : {Layout{2, 2, 1}, Layout{2, 4, 1}, Layout{2, 2, 2}}) {
    for (const std::int64_t inline_bytes : {0, 1 << 30}) {
      layout.zero = 0;
      const SimulatedRun want = Simulate(ExactJob(layout), std::uint64_t{0});
      ASSERT_EQ(want.check, absl::OkStatus());
      for (layout.zero = 1; layout.zero <= 3; ++layout.zero) {
        JobSpec spec = ExactJob(layout);
        spec.plan.zero_accumulates_whole = false;
        spec.plan.inline_bytes = inline_bytes;
        for (const std::uint64_t seed : Seeds(10)) {
          ASSERT_EQ(Difference(Simulate(spec, seed), want), "")
              << layout.ToString() << ", inline " << inline_bytes
              << ReplayCommand(seed);
        }
      }
    }
  }
}

TEST(ZeroPiecesTest, HasTheBitsOfASimulationOnThreads) {
  const SimulatedRun one = Simulate(ExactJob({1, 1, 1}), std::uint64_t{0});
  for (const Layout& layout : {Layout{2, 2, 1, 1}, Layout{2, 2, 1, 2},
                               Layout{2, 2, 1, 3}, Layout{2, 2, 2, 2}}) {
    EXPECT_EQ(ReportsOf(ExactJob(layout)).losses(), one.reports.losses())
        << layout.ToString();
  }
}

// --- Norms: of small integers, whose squares add up exactly in any order. ---

// Returns a job that finds the norm of all gradients, and never clips.
JobSpec JobOfNorms(const Layout& layout) {
  JobSpec spec = ExactJob(layout);
  if (layout.pp == 4) spec.plan.cuts = {1, 2, 4};
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 16.0 / 64;  // the rate of SmallJob()
    sgd.common.clip_grad_norm = 1e300;
    return std::make_unique<nn::Sgd>(sgd);
  };
  return spec;
}

TEST(ZeroPiecesTest, NormsOfEveryMeshOfEightAreThoseOfOneRank) {
  const SimulatedRun one = Simulate(JobOfNorms({1, 1, 1}), std::uint64_t{0});
  ASSERT_EQ(one.check, absl::OkStatus());
  ASSERT_GT(one.reports.steps[0].grad_norm, 0);
  for (const int tp : {1, 2, 4, 8}) {
    for (const int pp : {1, 2, 4}) {
      if (tp * pp > 8) continue;
      const int dp = 8 / tp / pp;
      for (const int stage : {0, 1, 2, 3}) {
        if (stage > 0 && dp == 1) continue;
        const Layout layout = {tp, dp, pp, stage};
        const SimulatedRun run =
            Simulate(JobOfNorms(layout), std::uint64_t{stage + 1u});
        ASSERT_EQ(run.check, absl::OkStatus()) << layout.ToString();
        for (std::size_t i = 0; i < one.reports.steps.size(); ++i) {
          // Squares of the second step have more than 53 bits.
          const double want = one.reports.steps[i].grad_norm;
          EXPECT_NEAR(run.reports.steps[i].grad_norm, want,
                      i == 0 ? 0 : 1e-14 * want)
              << layout.ToString() << ", step " << i;
          EXPECT_EQ(run.reports.steps[i].loss, one.reports.steps[i].loss)
              << layout.ToString() << ", step " << i;
        }
      }
    }
  }
}

TEST(ZeroPiecesTest, ClipsAsOneRank) {
  for (const MakeOptimizerFn& optimizer : {SgdThatClips(), AdamThatClips()}) {
    const SimulatedRun one =
        Simulate(GptJob({1, 1, 1}, optimizer), std::uint64_t{0});
    ASSERT_EQ(one.check, absl::OkStatus());
    ASSERT_GT(one.reports.steps[0].grad_norm, 0.05) << "no step is clipped";
    for (const Layout& layout : {Layout{2, 2, 1, 1}, Layout{2, 2, 1, 2},
                                 Layout{2, 2, 1, 3}, Layout{2, 2, 2, 2}}) {
      SCOPED_TRACE(layout.ToString());
      for (const std::uint64_t seed : Seeds(5)) {
        const SimulatedRun run = Simulate(GptJob(layout, optimizer), seed);
        ASSERT_EQ(run.check, absl::OkStatus()) << ReplayCommand(seed);
        ExpectNear(run.reports, one.reports);
      }
    }
  }
}

// The loss scale is too large at first: some slice of some piece has gradients
// that are not finite, and all ranks skip the step.
TEST(ZeroPiecesTest, AllRanksSkipTheStepsOfStageZero) {
  const auto job = [](int stage) {
    JobSpec spec = GptOfSlices({2, 2, 1, stage}, AdamOfSlices());
    spec.steps = 6;
    spec.loss_scale = 0x1p126;
    spec.dynamic_loss_scale.emplace();
    return spec;
  };
  const SimulatedRun want = Simulate(job(0), std::uint64_t{0});
  ASSERT_EQ(want.check, absl::OkStatus());
  std::int64_t skipped = 0;
  for (const StepReport& step : want.reports.steps) skipped += step.skipped;
  ASSERT_GT(skipped, 0);
  ASSERT_LT(skipped, 6);
  for (const int stage : kStagesOfPieces) {
    for (const std::uint64_t seed : Seeds(2)) {
      ASSERT_EQ(Difference(Simulate(job(stage), seed), want), "")
          << "stage " << stage << ReplayCommand(seed);
    }
  }
}

// --- Checkpoints. ---

// Expects the same files of whole tensors in two folders.
void ExpectSameFiles(const std::string& got, const std::string& want, int pp) {
  for (const char* what : {"model", "optimizer"}) {
    for (int i = 1; i <= pp; ++i) {
      const std::string file =
          pp == 1 ? absl::StrCat("/", what, ".safetensors")
                  : absl::StrCat("/", what, "-0000", i, "-of-0000", pp,
                                 ".safetensors");
      EXPECT_EQ(FileBytes(got + file), FileBytes(want + file)) << got << file;
    }
  }
}

TEST(ZeroPiecesTest, CheckpointsHaveTheBytesOfStageZero) {
  for (Layout layout : {Layout{2, 2, 1}, Layout{4, 2, 1}, Layout{2, 2, 2}}) {
    const std::string want = Saved(GptOfSlices(layout, AdamOfSlices()),
                                   absl::StrCat("stage_0_", layout.tp), 0);
    for (layout.zero = 1; layout.zero <= 3; ++layout.zero) {
      for (const std::uint64_t seed : Seeds(2)) {
        SCOPED_TRACE(absl::StrCat(layout.ToString(), ReplayCommand(seed)));
        JobSpec spec = GptOfSlices(layout, AdamOfSlices());
        spec.checkpoint.in_place = seed % 2 == 0;
        ExpectSameFiles(Saved(spec, absl::StrCat("slices_", seed), seed), want,
                        layout.pp);
      }
    }
  }
}

// A checkpoint of slices of pieces goes on under any other layout, with the
// bits of a run that goes on from whole states there.
TEST(ZeroPiecesTest, AnyLayoutGoesOnFromSlicesOfPieces) {
  const MakeOptimizerFn optimizer = AdamThatClips();
  const std::string whole = ThreeSteps("whole", {1, 1, 1}, optimizer);
  const std::string slices = ThreeSteps("slices", {2, 2, 1, 1}, optimizer);
  const Reports want = From(whole, {1, 1, 1}, optimizer);
  ASSERT_EQ(want.steps.size(), 3u);
  for (const Layout& layout :
       {Layout{1, 1, 1}, Layout{4, 1, 1}, Layout{4, 2, 1, 2},
        Layout{2, 2, 2, 1}, Layout{2, 2, 1, 3}, Layout{1, 4, 1, 1}}) {
    SCOPED_TRACE(layout.ToString());
    ExpectNear(From(slices, layout, optimizer), want);
    ExpectNear(From(whole, layout, optimizer), want);
  }
  // Tp 2, then 1, then 4.
  JobSpec second = GptJob({1, 1, 1}, optimizer);
  second.steps = 5;
  second.checkpoint.from = slices;
  const std::string path = Saved(second, "second", 1);
  for (const Layout& layout : {Layout{4, 2, 1, 1}, Layout{4, 2, 1, 3}}) {
    const Reports last = From(path, layout, optimizer);
    ASSERT_EQ(last.steps.size(), 1u);
    EXPECT_NEAR(last.steps[0].loss, want.steps[2].loss,
                1e-5 * want.steps[2].loss);
  }
}

// The job is stopped at any message, among them those that gather slices and
// pieces for a checkpoint.
TEST(ZeroPiecesTest, AResumedRunEndsWithTheBitsOfOneThatWasNotStopped) {
  const auto job = [](int stage) {
    JobSpec spec = ExactJob({2, 2, 1, stage});
    spec.eval_every = 0;
    spec.checkpoint.every = 1;
    return spec;
  };
  const std::string want = Saved(job(0), "straight", 0);
  int interrupted = 0;
  for (const std::uint64_t seed : Seeds(60)) {
    const ResumedRun run = StopAndResume(job(seed % 2 == 0 ? 1 : 3),
                                         absl::StrCat("stopped_", seed), seed);
    ASSERT_EQ(run.status(), absl::OkStatus()) << ReplayCommand(seed);
    interrupted += run.first.result->stopped;
    const std::vector<std::string>& paths =
        run.second.reports.checkpoints.empty() ? run.first.reports.checkpoints
                                               : run.second.reports.checkpoints;
    ASSERT_FALSE(paths.empty()) << ReplayCommand(seed);
    ExpectSameFiles(paths.back(), want, /*pp=*/1);
  }
  EXPECT_GT(interrupted, 0);
}

}  // namespace
}  // namespace troupe::actors
