// Deliberate bugs in the engine of hand-written loops, which a comparison with
// a job must reveal: two ranks, two backwards a step.

#include <cstdint>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "tests/actors/engine/loop_planted/bug.h"
#include "tests/actors/engine/loop_ranks.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSteps = 2;
constexpr char kRanksDiffer[] = "the ranks have different parameters";
constexpr char kOtherBits[] = "other bits than the job's";

struct Case {
  Bug bug;
  const char* name;
  const char* fault;
};

constexpr Case kCases[] = {
    {Bug::kHoldForgotten, "HoldForgotten", kRanksDiffer},
    {Bug::kAveragedTwice, "AveragedTwice", kOtherBits},
};

// Prints the bug's name in messages of GoogleTest.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class LoopBugsTest : public testing::TestWithParam<Case> {};

TEST_P(LoopBugsTest, IsFound) {
  const Case& bug = GetParam();
  const EngineFixture job({/*ranks=*/2, Numbers::kFloat, kSteps},
                          PowersOfTwo(/*ranks=*/2, /*micro_batches=*/2));
  ThreadRanks engines(job);
  engines.Run(kSteps);
  const ParameterValues want = ValuesOf(engines.runner(0).arena());
  const auto run = [&](std::uint64_t) -> std::string {
    LoopOptions options;
    options.run_inline = true;
    LoopRanks ranks(job, options);
    ranks.Train(kSteps);
    ParameterValues have[2];
    for (const int rank : {0, 1}) {
      have[rank] = ValuesOf(ranks.rank(rank).engine().parameters().arena(0));
    }
    if (have[0] != have[1]) return kRanksDiffer;
    return have[0] == want ? "" : kOtherBits;
  };
  ASSERT_EQ(run(0), "");
  ExpectFound(bug.bug, bug.name, bug.fault, run);
}

INSTANTIATE_TEST_SUITE_P(All, LoopBugsTest, testing::ValuesIn(kCases),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(LoopBugs, EveryBugHasACase) { ExpectACaseForEach<Bug>(kCases); }

}  // namespace
}  // namespace troupe::actors
