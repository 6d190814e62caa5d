// Tests deadlocks and wrong gradients known from other projects, planted into
// copies of Troupe's own sources (bugs.txt): each is found by every seed, and
// the same build without it is correct. docs/simulation.md has the table.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/sim/deep_models.h"
#include "tests/actors/sim/planted/bug.h"
#include "tests/actors/sim/planted/count_seeds.h"
#include "tests/actors/sim/planted/streams.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

// Limit on the messages of a job: a stage that waits for its peers in a loop
// sends messages to itself without end.
constexpr std::int64_t kMessagesMax = 100'000;

JobSpec Pipelined(const std::string& schedule, int pp) {
  const DeepModel gpt = SmallGpt();
  JobSpec spec = gpt.Job(pipeline::Mesh(/*dp=*/1, pp), /*micro_batches=*/4);
  EXPECT_TRUE(pipeline::SetSchedule(schedule, spec.plan).ok());
  spec.plan.cuts = *gpt.Cuts(pp);
  return spec;
}

JobSpec OneForwardOneBackward() { return Pipelined("1f1b", 2); }
// Returns a job in the strict order of GPipe: all forwards, then all backwards.
JobSpec GPipe() {
  JobSpec spec = Pipelined("gpipe", 2);
  spec.plan.dispatch = pipeline::Dispatch::kStrict;
  return spec;
}
JobSpec ThreeStages() { return Pipelined("1f1b", 3); }
JobSpec FourStages() { return Pipelined("1f1b", 4); }

JobSpec Tied() {
  return SmallGpt(/*tie_head=*/true)
      .Job(pipeline::Mesh(/*dp=*/2), /*micro_batches=*/2);
}

JobSpec Accumulating() {
  return SmallGpt().Job(pipeline::Mesh(/*dp=*/2), /*micro_batches=*/4);
}

// Returns a job whose last stage is a ReLU.
JobSpec LastWithoutParameters() {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kFloat, /*steps=*/2});
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/3);
  spec.model = [make = spec.model] {
    auto model = make();
    static_cast<nn::Sequential&>(*model).Append<nn::ReLU>();
    return model;
  };
  spec.plan.cuts = {2, 5};
  return spec;
}

std::string WhatIsWrong(KnownBug bug, const JobSpec& spec,
                        const SimulatedRun& sound, std::uint64_t seed) {
  PlantedBug<KnownBug>() = bug;
  ForgetMessages();
  SimulationOptions options;
  options.seed = seed;
  options.messages_max = kMessagesMax;
  const std::string wrong = Difference(Simulate(spec, options), sound);
  return wrong.empty() ? "sound" : absl::StrCat("error: ", wrong);
}

SimulatedRun Sound(const JobSpec& spec) {
  SimulationOptions options;
  options.messages_max = kMessagesMax;
  SimulatedRun run = Simulate(spec, options);
  EXPECT_EQ(run.check, absl::OkStatus());
  return run;
}

Tally SeedsThatFind(KnownBug bug, const JobSpec& spec,
                    const std::vector<std::uint64_t>& seeds) {
  const SimulatedRun sound = Sound(spec);
  return CountSeeds(seeds, {/*ended=*/true, "sound"}, [&](std::uint64_t seed) {
    return WhatIsWrong(bug, spec, sound, seed);
  });
}

struct Case {
  KnownBug bug;
  const char* name;
  JobSpec (*job)();
  const char* found;  // part of the fault by which it is found
};

#define TROUPE_CASE(bug, job, found) \
  { KnownBug::k##bug, #bug, job, found }

constexpr Case kCases[] = {
    TROUPE_CASE(ReceiveBeforeCompute, OneForwardOneBackward,
                "no progress for 1m"),
    TROUPE_CASE(ShapesInOrder, FourStages, "no end after"),
    TROUPE_CASE(SendHoldsTheStream, OneForwardOneBackward, "no end after"),
    TROUPE_CASE(TiedCountsTwice, Tied, "the runs differ after step 1"),
    TROUPE_CASE(ScaledByMicroBatchesToo, Accumulating,
                "the runs differ after step 1"),
    TROUPE_CASE(NothingToReduce, LastWithoutParameters, "no progress for 1m"),
};

class KnownBugsTest : public testing::TestWithParam<Case> {};

TEST_P(KnownBugsTest, IsFoundByEverySeed) {
  const Case& c = GetParam();
  const Tally tally = SeedsThatFind(c.bug, c.job(), Seeds(10));
  EXPECT_EQ(tally.found(), tally.tried) << tally.ToString();
  EXPECT_TRUE(absl::StrContains(tally.last, c.found)) << tally.last;
  std::printf("%s, %s: %s\n", c.name, tally.ToString().c_str(),
              tally.last.c_str());
}

TEST_P(KnownBugsTest, IsNotThereWithoutIt) {
  const Tally tally =
      SeedsThatFind(KnownBug::kNone, GetParam().job(), Seeds(10));
  EXPECT_EQ(tally.found(), 0) << tally.last;
}

INSTANTIATE_TEST_SUITE_P(Bugs, KnownBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Smaller jobs do not show these bugs, which is why they survive.
TEST(KnownBugsTest, ShapesOfThreeStagesAreExchangedInAnyOrder) {
  EXPECT_EQ(
      SeedsThatFind(KnownBug::kShapesInOrder, ThreeStages(), Seeds(10)).found(),
      0);
}

TEST(KnownBugsTest, GPipeSendsOneWayAtATime) {
  EXPECT_EQ(
      SeedsThatFind(KnownBug::kSendHoldsTheStream, GPipe(), Seeds(10)).found(),
      0);
}

}  // namespace
}  // namespace troupe::actors
