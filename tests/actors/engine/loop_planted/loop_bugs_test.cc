// Deliberate bugs in the engine of hand-written loops, which two ranks with two
// backwards a step must reveal: by a comparison with a job, by a parameter that
// did not move, or by a call that is not refused.

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/ops/add.h"
#include "tests/actors/engine/loop_planted/bug.h"
#include "tests/actors/engine/loop_ranks.h"
#include "tests/actors/sim/planted/hunt.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSteps = 2;
constexpr char kRanksDiffer[] = "the ranks have different parameters";
constexpr char kOtherBits[] = "other bits than the job's";
constexpr char kDidNotMove[] = "a parameter of the first backward is left out";
constexpr char kBrokenPromise[] = "a step that breaks static_graph is accepted";

struct Case {
  Bug bug;
  const char* name;
  const char* fault;
};

constexpr Case kCases[] = {
    {Bug::kHoldForgotten, "HoldForgotten", kRanksDiffer},
    {Bug::kAveragedTwice, "AveragedTwice", kOtherBits},
    {Bug::kMarksOfTheLastBackward, "MarksOfTheLastBackward", kDidNotMove},
    {Bug::kOwnMarksAlone, "OwnMarksAlone", kRanksDiffer},
    {Bug::kGradientsKept, "GradientsKept", kOtherBits},
    {Bug::kUnsyncedLost, "UnsyncedLost", kOtherBits},
    {Bug::kStaticUnchecked, "StaticUnchecked", kBrokenPromise},
};

// Prints the bug's name in messages of GoogleTest.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// A layer, and another that only some forwards use.
class Branches : public nn::Module {
 public:
  Branches()
      : used_(Add<nn::Linear>("used", 4, 2)),
        extra_(Add<nn::Linear>("extra", 4, 2)) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    const nn::Tensor y = used_(ctx, x);
    return uses_extra ? nn::ops::Add(ctx, y, extra_(ctx, x)) : y;
  }
  bool uses_extra = false;

 private:
  nn::Linear& used_;
  nn::Linear& extra_;
};

// Runs a step of two backwards, of which the first uses the extra layer on rank
// 1. Returns its fault.
std::string FaultOfUses(const EngineFixture& job) {
  LoopOptions options;
  options.model = [] { return std::make_unique<Branches>(); };
  LoopRanks ranks(job, options);
  const auto values = [&](int rank) {
    return ValuesOf(ranks.rank(rank).engine().parameters().arena(0));
  };
  const ParameterValues before = values(0);
  ranks.Run([&](LoopRank& rank) {
    for (const bool first : {true, false}) {
      static_cast<Branches&>(rank.module()).uses_extra =
          first && rank.rank() == 1;
      LoopBackward backward;
      backward.tape = &rank.tape();
      backward.loss = rank.Loss(job.Batches(rank.rank(), 0)[first ? 0 : 1]);
      backward.scale = rank.ScaleOf(backward.loss);
      backward.synced = !first;
      EXPECT_TRUE(rank.engine().Backward(backward).ok());
    }
    EXPECT_TRUE(rank.engine().Step().ok());
  });
  if (values(0) != values(1)) return kRanksDiffer;
  const bool moved = values(0).at("extra.weight") != before.at("extra.weight");
  return moved ? "" : kDidNotMove;
}

// Promises a static graph, and uses the extra layer in the second step. Returns
// the fault.
std::string FaultOfPromise(const EngineFixture& job) {
  LoopOptions options;
  options.model = [] { return std::make_unique<Branches>(); };
  options.static_graph = true;
  LoopRanks ranks(job, options);
  bool refused[2] = {};
  ranks.Run([&](LoopRank& rank) {
    for (const bool second : {false, true}) {
      static_cast<Branches&>(rank.module()).uses_extra = second;
      EXPECT_TRUE(rank.engine().ZeroGrad().ok());
      const nn::Tensor loss = rank.Loss(job.Batches(rank.rank(), 0)[0]);
      EXPECT_TRUE(rank.engine().Backward({&rank.tape(), loss}).ok());
      refused[rank.rank()] = !rank.engine().Step().ok();
      EXPECT_TRUE(rank.engine().AwaitGradients().ok());
    }
  });
  return refused[0] && refused[1] ? "" : kBrokenPromise;
}

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
    if (have[0] != want) return kOtherBits;
    const std::string uses = FaultOfUses(job);
    return uses.empty() ? FaultOfPromise(job) : uses;
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
