// Tests tensor parallelism in jobs: ranks along tp have pieces of layers. One
// rank, which has all of the model, is the judge of losses, norms, parameters
// and checkpoints.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "gtest/gtest.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "pipeline/plan.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/divided_jobs.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

// Returns all layouts of up to 8 ranks with pieces.
std::vector<Layout> Layouts() {
  return {{2, 1, 1}, {4, 1, 1}, {2, 2, 1}, {2, 1, 2},
          {2, 2, 2}, {4, 2, 1}, {4, 1, 2}};
}

// --- An MLP of small integers, whose sums are exact in any order. ---

// Expects the losses and evaluations of the exact job on one rank, and that
// copies are equal.
void ExpectExact(const SimulatedRun& run) {
  const SimulatedRun one = Simulate(ExactJob({1, 1, 1}), std::uint64_t{0});
  ASSERT_EQ(one.check, absl::OkStatus());
  ASSERT_EQ(run.check, absl::OkStatus());
  ASSERT_EQ(run.reports.losses(), one.reports.losses());
  ASSERT_EQ(run.reports.evaluations.size(), one.reports.evaluations.size());
  for (std::size_t i = 0; i < run.reports.evaluations.size(); ++i) {
    EXPECT_EQ(run.reports.evaluations[i].loss, one.reports.evaluations[i].loss);
    EXPECT_EQ(run.reports.evaluations[i].count,
              one.reports.evaluations[i].count);
  }
}

TEST(TensorParallelTest, HasTheBitsOfOneRankWhereSumsAreExact) {
  for (const Layout& layout : Layouts()) {
    SCOPED_TRACE(layout.ToString());
    for (const std::uint64_t seed : Seeds(100)) {
      SCOPED_TRACE(seed);
      ExpectExact(Simulate(ExactJob(layout), seed));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TensorParallelTest, HasTheBitsOfOneRankWhereReductionsAreInline) {
  for (const Layout& layout : {Layout{2, 2, 1}, Layout{4, 1, 1}}) {
    JobSpec spec = ExactJob(layout);
    spec.plan.inline_bytes = 1 << 30;
    for (const std::uint64_t seed : Seeds(50)) {
      SCOPED_TRACE(absl::StrCat(layout.ToString(), ", seed ", seed));
      ExpectExact(Simulate(spec, seed));
    }
  }
}

TEST(TensorParallelTest, HasTheBitsOfOneRankOnThreads) {
  const SimulatedRun one = Simulate(ExactJob({1, 1, 1}), std::uint64_t{0});
  for (const Layout& layout : Layouts()) {
    for (const std::int64_t inline_bytes : {0, 1 << 30}) {
      JobSpec spec = ExactJob(layout);
      spec.plan.inline_bytes = inline_bytes;
      EXPECT_EQ(ReportsOf(spec).losses(), one.reports.losses())
          << layout.ToString() << ", " << inline_bytes;
    }
  }
}

// Files have whole parameters and states, with 4 pieces as with one.
TEST(TensorParallelTest, CheckpointsHaveTheBytesOfOneRank) {
  for (const int pp : {1, 2}) {
    const std::string want = Saved(ExactJob({1, 1, pp}), "whole", 0);
    for (const Layout& layout : Layouts()) {
      if (layout.pp != pp) continue;
      for (const std::uint64_t seed : Seeds(10)) {
        JobSpec spec = ExactJob(layout);
        spec.checkpoint.in_place = seed % 2 == 0;
        const std::string got =
            Saved(spec, absl::StrCat("pieces_", seed), seed);
        for (const std::string what : {"model", "optimizer"}) {
          for (int i = 1; i <= pp; ++i) {
            const std::string file =
                pp == 1 ? absl::StrCat("/", what, ".safetensors")
                        : absl::StrCat("/", what, "-0000", i, "-of-0000", pp,
                                       ".safetensors");
            EXPECT_EQ(FileBytes(got + file), FileBytes(want + file))
                << layout.ToString() << file;
          }
        }
      }
    }
  }
}

// --- A GPT. ---

// Returns a job whose ranks along tp may share the 4 tokens of a sequence.
JobSpec TokensJob(const Layout& layout) {
  JobSpec spec = GptJob(layout, AdamThatClips(), /*tie_head=*/true,
                        /*dropout=*/0.1);
  spec.test = spec.train;
  spec.eval_every = 3;
  return spec;
}

TEST(TensorParallelTest, AGptHasTheLossesAndNormsOfOneRank) {
  for (const MakeOptimizerFn& optimizer : {SgdThatClips(), AdamThatClips()}) {
    for (const bool tie_head : {true, false}) {
      const SimulatedRun one =
          Simulate(GptJob({1, 1, 1}, optimizer, tie_head), std::uint64_t{0});
      ASSERT_EQ(one.check, absl::OkStatus());
      ASSERT_GT(one.reports.steps[0].grad_norm, 0.05) << "no step is clipped";
      for (const Layout& layout : Layouts()) {
        const JobSpec spec = GptJob(layout, optimizer, tie_head);
        for (const std::uint64_t seed : Seeds(5)) {
          SCOPED_TRACE(absl::StrCat(layout.ToString(), ", seed ", seed));
          const SimulatedRun run = Simulate(spec, seed);
          ASSERT_EQ(run.check, absl::OkStatus());
          ExpectNear(run.reports, one.reports);
        }
      }
    }
  }
}

// --- The vocabulary: 7 tokens, in pieces of 4 and 3, or of 2, 2, 2 and 1. ---

nn::ops::LossFn CrossEntropy(double smoothing, std::int64_t ignored,
                             std::vector<double> weights) {
  nn::ops::CrossEntropyOptions options;
  options.label_smoothing = smoothing;
  options.ignore_index = ignored;
  options.class_weights = std::move(weights);
  return nn::ops::CrossEntropyLoss(options);
}

// Returns a loss that gets whole logits, since it declares nothing.
nn::ops::LossFn OfWholeLogits(nn::ops::LossFn loss) {
  return [loss = std::move(loss)](nn::Context& ctx, nn::Tensor logits,
                                  const nn::Tensor& target) {
    EXPECT_TRUE(!ctx.ok() || logits.dim(2) == 7) << logits.ToString();
    return loss(ctx, std::move(logits), target);
  };
}

TEST(TensorParallelTest, LossesOfSplitLogitsAreThoseOfOneRank) {
  const std::vector<double> weights = {1, 2, 0.5, 1, 1, 3, 0.25};
  const nn::ops::LossFn all = CrossEntropy(0.2, 3, weights);
  for (const nn::ops::LossFn& loss :
       {CrossEntropy(0.1, -100, {}), CrossEntropy(0, 5, {}),
        CrossEntropy(0, -100, weights), all, OfWholeLogits(all)}) {
    const auto job = [&](const Layout& layout) {
      JobSpec spec = GptJob(layout, SgdThatClips());
      spec.loss = loss;
      spec.test = spec.train;
      spec.eval_every = 2;
      return spec;
    };
    const SimulatedRun one = Simulate(job({1, 1, 1}), std::uint64_t{0});
    ASSERT_EQ(one.check, absl::OkStatus());
    // Under sanitizers, pieces of unequal sizes alone.
    const Layout layouts[] = {{4, 1, 1}, {2, 1, 1}, {2, 2, 2}};
    for (const std::uint64_t number : Cases(std::size(layouts))) {
      const Layout& layout = layouts[number];
      SCOPED_TRACE(layout.ToString());
      const SimulatedRun run = Simulate(job(layout), std::uint64_t{4});
      ASSERT_EQ(run.check, absl::OkStatus());
      ExpectNear(run.reports, one.reports);
    }
  }
}

// Before training moves it, a table has the initial values of one rank, and
// files have no padding.
TEST(TensorParallelTest, FilesHaveTheInitialTablesOfOneRank) {
  const MakeOptimizerFn stays = nn::SgdOptions{/*lr=*/0};
  for (const bool tie_head : {true, false}) {
    for (const int pp : {1, 2}) {
      const auto saved = [&](const Layout& layout) {
        JobSpec spec = GptJob(layout, stays, tie_head);
        spec.steps = 1;
        return Saved(std::move(spec), absl::StrCat("table_", layout.tp), 0);
      };
      const std::string want = saved({1, 1, pp});
      for (const int tp : {2, 4}) {
        const std::string got = saved({tp, 1, pp});
        for (int i = 1; i <= pp; ++i) {
          const std::string file =
              pp == 1 ? "/model.safetensors"
                      : absl::StrCat("/model-0000", i, "-of-00002.safetensors");
          EXPECT_EQ(FileBytes(got + file), FileBytes(want + file))
              << tp << file << (tie_head ? ", tied" : "");
        }
      }
    }
  }
}

// The order of messages changes no bit.
TEST(TensorParallelTest, AGptHasOneSetOfBitsUnderAllSeeds) {
  for (const JobSpec& spec :
       {GptJob({2, 2, 2}, AdamThatClips()),
        TokensJob({2, 2, 2, 0, /*shares_tokens=*/true})}) {
    const SimulatedRun want = Simulate(spec, std::uint64_t{0});
    ASSERT_EQ(want.check, absl::OkStatus());
    for (const std::uint64_t seed : Seeds(50)) {
      ASSERT_EQ(Difference(Simulate(spec, seed), want), "") << "seed " << seed;
    }
    EXPECT_EQ(ReportsOf(spec).losses(), want.reports.losses());
  }
}

TEST(TensorParallelTest, AnyLayoutGoesOnFromTheCheckpointOfAnother) {
  const MakeOptimizerFn optimizer = AdamThatClips();
  const std::string whole = ThreeSteps("from_one", {1, 1, 1}, optimizer);
  const Reports want = From(whole, {1, 1, 1}, optimizer);
  ASSERT_EQ(want.steps.size(), 3u);
  for (const Layout& layout :
       {Layout{2, 1, 1}, Layout{4, 1, 1}, Layout{2, 2, 1}, Layout{1, 1, 2}}) {
    SCOPED_TRACE(layout.ToString());
    const std::string path = ThreeSteps(
        absl::StrCat("from_", layout.tp, layout.pp), layout, optimizer);
    ExpectNear(From(path, {1, 1, 1}, optimizer), want);
    ExpectNear(From(path, {2, 1, 1}, optimizer), want);
    ExpectNear(From(path, {4, 1, 2}, optimizer), want);
  }
}

// --- Shared tokens. ---

TEST(TensorParallelTest, SharedTokensHaveTheLossesAndNormsOfOneRank) {
  const SimulatedRun one = Simulate(TokensJob({1, 1, 1}), std::uint64_t{0});
  ASSERT_EQ(one.check, absl::OkStatus());
  std::vector<JobSpec> specs;
  for (const Layout& layout :
       {Layout{2, 1, 1, 0, true}, Layout{4, 1, 1, 0, true},
        Layout{2, 2, 2, 0, true}}) {
    specs.push_back(TokensJob(layout));
  }
  specs.push_back(TokensJob({2, 2, 1, 0, true}));
  specs.back().plan.inline_bytes = 1 << 30;
  specs.push_back(TokensJob({2, 2, 1, /*zero=*/1, true}));
  specs.push_back(TokensJob({2, 2, 1, /*zero=*/3, true}));
  specs.back().plan.zero_accumulates_whole = false;
  // Gathers in passes over weights alone.
  specs.push_back(TokensJob({2, 1, 2, 0, true}));
  ASSERT_TRUE(pipeline::SetSchedule("zb_h1", specs.back().plan).ok());
  for (const JobSpec& spec : specs) {
    for (const std::uint64_t seed : Seeds(3)) {
      SCOPED_TRACE(absl::StrCat(spec.plan.mesh.ToString(), ", seed ", seed));
      const SimulatedRun run = Simulate(spec, seed);
      ASSERT_EQ(run.check, absl::OkStatus());
      ExpectNear(run.reports, one.reports);
    }
  }
}

TEST(TensorParallelTest, CheckpointsOfSharedTokensGoOnAnywhere) {
  const MakeOptimizerFn optimizer = AdamThatClips();
  const std::string whole = ThreeSteps("whole", {1, 1, 1}, optimizer);
  const Reports want = From(whole, {1, 1, 1}, optimizer);
  ExpectNear(From(whole, {2, 1, 2, 0, true}, optimizer), want);
  const std::string path = ThreeSteps("tokens", {2, 2, 1, 0, true}, optimizer);
  ExpectNear(From(path, {1, 1, 1}, optimizer), want);
}

TEST(TensorParallelTest, BeginsWithPiecesOfAFileOfWeights) {
  const std::string path = absl::StrCat(
      ThreeSteps("weights", {1, 1, 1}, SgdThatClips()), "/model.safetensors");
  const auto reports_of = [&](const Layout& layout) {
    JobSpec spec = GptJob(layout, AdamThatClips());
    spec.init.from = path;
    const SimulatedRun run = Simulate(spec, std::uint64_t{1});
    EXPECT_EQ(run.check, absl::OkStatus());
    return run.reports;
  };
  const Reports want = reports_of({1, 1, 1});
  ExpectNear(reports_of({2, 1, 1}), want);
  ExpectNear(reports_of({4, 1, 2}), want);
}

// --- Refusals. ---

void ExpectRefused(const JobSpec& spec, const std::string& why) {
  const absl::Status status = Simulate(spec, std::uint64_t{0}).result.status();
  EXPECT_FALSE(status.ok());
  std::vector<std::string> fields = {pipeline::AxisFieldName("tp")};
  if (spec.plan.sequence_parallel) {
    fields.insert(fields.begin(), "PlanOptions.sequence_parallel");
  }
  EXPECT_EQ(base::FieldsOf(status), fields);
  EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
}

TEST(TensorParallelTest, RefusesByNameWhatPiecesCannotDo) {
  ExpectRefused(GptJob({3, 1, 1}, SgdThatClips()), "4 heads");
  ExpectRefused(TokensJob({1, 1, 1, 0, true}), "PlanOptions.mesh.tp is 1");
  ExpectRefused(LaidOut(SmallJob(SmallJobOptions()), {2, 1, 1, 0, true}),
                "the model does not declare");
}

TEST(TensorParallelTest, SaysThatAModelHasNoPieces) {
  std::vector<std::string> notes;
  JobSpec spec = LaidOut(SmallJob(SmallJobOptions()), {2, 1, 1});
  spec.note = [&](absl::string_view note) { notes.emplace_back(note); };
  ASSERT_EQ(Simulate(spec, std::uint64_t{0}).check, absl::OkStatus());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(absl::StrContains(notes[0], "no layer of the model is split"))
      << notes[0];
}

}  // namespace
}  // namespace troupe::actors
