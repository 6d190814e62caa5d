// Tests that the correct training step of two ranks gives the bits of the plain
// loop in every order, and that each planted bug is found by some seed.

#include "tests/base/cuda/emulated/two_rank_step.h"

#include <cstdint>
#include <cstdio>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/base/cuda/emulated/runtime_test_util.h"
#include "tests/base/seeds.h"

namespace emulated_cuda_test {
namespace {

using troupe::ReplayCommand;
using troupe::Seeds;

struct Variant {
  const char* name;
  bool graph;
  bool nonblocking;
};

class TwoRankStepTest : public testing::TestWithParam<Variant> {};

TEST_P(TwoRankStepTest, EqualsThePlainLoopToTheBitInEveryOrder) {
  StepOptions options;
  options.graph = GetParam().graph;
  options.nonblocking = GetParam().nonblocking;
  const StepResult expected = PlainLoop();
  std::set<std::uint64_t> orders;
  const auto seeds = Seeds(500);
  for (std::uint64_t seed : seeds) {
    NewWorld(seed);
    ASSERT_TRUE(TrainTwoRanks(options) == expected) << ReplayCommand(seed);
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
    orders.insert(emulated_cuda::TraceHash());
  }
  RecordProperty("seeds", static_cast<int>(seeds.size()));
  RecordProperty("orders", static_cast<int>(orders.size()));
  EXPECT_GT(orders.size(), seeds.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(
    All, TwoRankStepTest,
    testing::Values(Variant{"Eager", false, false},
                    Variant{"EagerNonblocking", false, true},
                    Variant{"Graph", true, false}),
    [](const auto& info) { return std::string(info.param.name); });

struct Planted {
  Bug bug;
  bool graph;
  bool nonblocking;
  friend std::ostream& operator<<(std::ostream& out, const Planted& planted) {
    return out << NameOf(planted.bug)
               << (planted.graph ? ", graph" : ", eager");
  }
};

class PlantedBugsTest : public testing::TestWithParam<Planted> {};

// ThreadSanitizer would stop at the race, which race_reports_test.cc tests.
TEST_P(PlantedBugsTest, IsFoundByASeed) {
  if (kUnderTsan) GTEST_SKIP() << "races on purpose";
  if (kUnderAsan) GTEST_SKIP() << "it stops at a use of freed memory";
  StepOptions options;
  options.graph = GetParam().graph;
  options.nonblocking = GetParam().nonblocking;
  options.bug = GetParam().bug;
  const StepResult expected = PlainLoop();
  int bits = 0;
  int errors = 0;
  int problems = 0;
  constexpr std::uint64_t kSeeds = 60;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    NewWorld(seed);
    const StepResult result = TrainTwoRanks(options);
    const bool has_problems = !AllProblems().empty();
    errors += result.has_failed;
    problems += !result.has_failed && has_problems;
    bits += !result.has_failed && !has_problems && !(result == expected);
  }
  std::printf(
      "%-40s %-5s of %d seeds: %2d other bits, %2d reports, %2d "
      "errors of calls\n",
      NameOf(options.bug), options.graph ? "graph" : "eager",
      static_cast<int>(kSeeds), bits, problems, errors);
  EXPECT_GT(bits + errors + problems, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedBugsTest,
    testing::Values(Planted{Bug::kNoWaitForGradient, false, false},
                    Planted{Bug::kNoWaitForGradient, true, false},
                    Planted{Bug::kNoWaitForParameter, false, false},
                    Planted{Bug::kLossReadEarly, false, false},
                    Planted{Bug::kLossReadEarly, true, false},
                    Planted{Bug::kFreedEarly, false, false},
                    Planted{Bug::kSlotReusedEarly, false, false},
                    Planted{Bug::kSlotReusedEarly, true, false},
                    Planted{Bug::kUsedBeforeMalloc, false, false},
                    Planted{Bug::kWrongEvent, false, false},
                    Planted{Bug::kWrongEvent, true, false},
                    Planted{Bug::kEventTooSoon, false, false},
                    Planted{Bug::kEventTooSoon, true, false},
                    Planted{Bug::kNullStream, false, false},
                    Planted{Bug::kNullStream, true, false},
                    Planted{Bug::kStackPointer, true, false},
                    Planted{Bug::kScalarByValue, true, false},
                    Planted{Bug::kSwappedOrder, false, false},
                    Planted{Bug::kSwappedOrder, true, false},
                    Planted{Bug::kInProgressIgnored, false, true}));

}  // namespace
}  // namespace emulated_cuda_test
