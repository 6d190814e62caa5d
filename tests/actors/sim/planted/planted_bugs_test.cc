// Deliberate bugs in the step engine, the cursor, the reducer, the strand of
// communication and the communicator itself: each must be found by a simulated
// job within a thousand seeds, by a check that says what is wrong.
// docs/simulation.md has the table.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "nn/optim/sgd.h"
#include "tests/actors/sim/planted/bug.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr std::uint64_t kSeeds = 1000;

JobSpec Launched() { return SmallJob({/*ranks=*/3, Numbers::kFloat, 3}); }

// Buckets of several chunks each.
JobSpec Wide() {
  SmallJobOptions options;
  options.ranks = 3;
  options.width = 48;
  JobSpec spec = SmallJob(options);
  spec.plan.buckets.bucket_bytes = 10'000;
  return spec;
}

JobSpec WideInline() {
  JobSpec spec = Wide();
  spec.plan.inline_bytes = 1 << 30;
  return spec;
}

// A bucket for each layer.
JobSpec Exact() { return SmallJob({/*ranks=*/3, Numbers::kExact, 2}); }

JobSpec Stages() {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kFloat, 3});
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/3);
  spec.plan.cuts = {2, 4};
  spec.test = spec.train;
  spec.eval_every = 1;
  return spec;
}

JobSpec Evaluating() {
  JobSpec spec = Launched();
  spec.test = spec.train;
  spec.eval_every = 1;
  return spec;
}

// Updates that look at all gradients first.
JobSpec SkippingSteps() {
  JobSpec spec = Launched();
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.skip_nonfinite = true;
    return std::make_unique<nn::Sgd>(sgd);
  };
  return spec;
}

struct Case {
  Bug bug;
  const char* name;
  JobSpec (*job)();
  // In what the check says.
  const char* found;
};

#define TROUPE_CASE(bug, job, found) \
  { Bug::k##bug, #bug, job, found }

constexpr Case kCases[] = {
    TROUPE_CASE(EarlyTransferIsLost, Stages, "no progress for 1m"),
    TROUPE_CASE(TransferOfAnotherStepIsTaken, Stages, "a second time"),
    TROUPE_CASE(AnotherBucketIsReduced, Launched,
                "updated before its reduction was there"),
    TROUPE_CASE(BucketIsReleasedWhenReady, Exact, "the runs differ after"),
    TROUPE_CASE(MicroBatchWithoutLoss, Launched, "the runs differ after"),
    TROUPE_CASE(ReductionsCountedOverSteps, SkippingSteps,
                "no progress for 1m"),
    TROUPE_CASE(OneNeedIsEnough, Launched,
                "updated before its reduction was there"),
    TROUPE_CASE(InlineIsLaunched, WideInline, "no progress for 1m"),
    TROUPE_CASE(LossOfOneRank, Launched, "ranks 2 and 0 differ after"),
    TROUPE_CASE(GroupsMixedUp, Stages, "of the group differs"),
    TROUPE_CASE(DoesNotDriveOn, Wide, "no progress for 1m"),
    TROUPE_CASE(ToldWhenStarted, Launched, "differ after"),
    TROUPE_CASE(DoneBeforeTheLastBlock, Wide, "differ after"),
    TROUPE_CASE(LastElementIsNotReduced, Wide, "differ after"),
    TROUPE_CASE(SumInOrderOfWhoIsFirst, Launched, "the loss of step"),
    TROUPE_CASE(OwnReplicaOnly, WideInline, "differ after step 1"),
    TROUPE_CASE(NeverIdle, Wide, "no progress for 1m"),
    TROUPE_CASE(LooksOnce, Wide, "no progress for 1m"),
    TROUPE_CASE(FastestRankCounts, Launched, "not updated exactly once"),
    TROUPE_CASE(OneEvaluationIsMissing, Evaluating, "no progress for 1m"),
};

// What a child process has written to its standard error before it ended,
// however it ended: a bug may well abort it.
std::string InChild(const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    body();
    std::fflush(stderr);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

SimulatedRun RunCase(const Case& c, std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  return Simulate(c.job(), options);
}

// Tries seeds until one shows the bug. Writes a line for each before it is
// tried, since the process may not survive, and what was found behind it.
void Hunt(const Case& c, const SimulatedRun& sound) {
  PlantedBug() = c.bug;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    std::fprintf(stderr, "\nseed %d: ", static_cast<int>(seed));
    const std::string difference = Difference(RunCase(c, seed), sound);
    if (difference.empty()) continue;
    std::fprintf(stderr, "%s", difference.c_str());
    return;
  }
}

class PlantedBugsTest : public testing::TestWithParam<Case> {};

TEST_P(PlantedBugsTest, IsFound) {
  const Case& c = GetParam();
  const SimulatedRun sound = RunCase(c, 0);
  ASSERT_EQ(sound.check, absl::OkStatus());
  ASSERT_EQ(Difference(RunCase(c, 1), sound), "");
  const std::string text = InChild([&] { Hunt(c, sound); });
  const std::string last = text.substr(text.rfind("\nseed ") + 1);
  EXPECT_TRUE(absl::StrContains(last, c.found)) << last;
  RecordProperty("found", last);
  std::printf("%s, %s\n", c.name, last.c_str());
}

INSTANTIATE_TEST_SUITE_P(Bugs, PlantedBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(PlantedBugsTest, EveryBugHasACase) {
  constexpr int kBugs = static_cast<int>(Bug::kEnd) - 1;
  ASSERT_EQ(std::size(kCases), std::size_t{kBugs});
  for (int i = 0; i < kBugs; ++i) {
    EXPECT_EQ(static_cast<int>(kCases[i].bug), i + 1);
  }
}

}  // namespace
}  // namespace troupe::actors
