// Whole jobs under the seeded scheduler: 2, 3, 4 and 8 ranks, 1,000 seeds each.
//
// Replay of a failing seed: the message of every failure ends with the command.

#include "actors/sim/simulation.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

using Values = std::vector<double>;

Values ToDoubles(const nn::Tensor& flat) {
  Values values(flat.numel());
  for (std::int64_t i = 0; i < flat.numel(); ++i) {
    values[i] = flat.dtype() == nn::DType::kF64 ? flat.data<double>()[i]
                                                : flat.data<float>()[i];
  }
  return values;
}

// The parameters by name: arenas of different widths are padded differently.
using Parameters = std::map<std::string, Values>;

Parameters ParametersOf(const nn::ParameterArena& arena) {
  Parameters parameters;
  for (const nn::ArenaSlot& slot : arena.slots()) {
    parameters[slot.parameter->name] = ToDoubles(slot.parameter->value);
  }
  return parameters;
}

// Every rank's parameters after every step: [step][rank].
struct Outcome {
  absl::StatusOr<JobResult> result = absl::UnknownError("not run");
  std::vector<std::vector<Parameters>> parameters;
  std::uint64_t hash = 0;
  absl::Status invariants;
};

Outcome Simulate(const SmallJobOptions& job, SimulationOptions options) {
  Outcome outcome;
  outcome.parameters.assign(job.steps, std::vector<Parameters>(job.ranks));
  options.after_step = [&](int rank, std::int64_t step,
                           const nn::ParameterArena& arena) {
    outcome.parameters[step][rank] = ParametersOf(arena);
  };
  Simulation simulation(SmallJob(job), options);
  outcome.result = simulation.Run();
  outcome.hash = simulation.trace_hash();
  outcome.invariants =
      CheckInvariants(simulation.recorder(), simulation.plan(), 0, job.steps);
  return outcome;
}

double LargestDifference(const Parameters& a, const Parameters& b) {
  double largest = 0;
  for (const auto& [name, values] : a) {
    const Values& others = b.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = std::abs(values[i] - others[i]);
      // A NaN differs from everything.
      if (!(difference <= largest)) largest = difference;
    }
  }
  return largest;
}

// What is wrong with a run, compared with one rank; empty: nothing.
std::string Verdict(const SmallJobOptions& job, const Outcome& outcome,
                    const Outcome& one_rank) {
  if (!outcome.result.ok()) return outcome.result.status().ToString();
  if (!outcome.invariants.ok()) return outcome.invariants.ToString();
  for (std::int64_t step = 0; step < job.steps; ++step) {
    const std::vector<Parameters>& ranks = outcome.parameters[step];
    for (int rank = 1; rank < job.ranks; ++rank) {
      if (ranks[rank] == ranks[0]) continue;
      return absl::StrCat("ranks 0 and ", rank, " differ after step ",
                          step + 1);
    }
    const double difference =
        LargestDifference(ranks[0], one_rank.parameters[step][0]);
    const double allowed = job.numbers == Numbers::kExact ? 0 : 1e-5;
    if (!(difference <= allowed)) {
      return absl::StrCat("differs from one rank by ", difference,
                          " after step ", step + 1);
    }
  }
  return "";
}

const Outcome& OneRank(Numbers numbers, std::int64_t steps) {
  static auto* const outcomes = new std::map<Numbers, Outcome>();
  auto [found, fresh] = outcomes->try_emplace(numbers);
  if (fresh) found->second = Simulate({1, numbers, steps}, {});
  return found->second;
}

std::string ReplayCommand(std::uint64_t seed) {
  const testing::TestInfo* test =
      testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat(
      "\nreplay: bazel test //tests/actors/sim:simulation_test "
      "--test_filter='",
      test->test_suite_name(), ".", test->name(),
      "' --test_env=TROUPE_SIM_SEED=", seed);
}

// The seeds to run: one, where TROUPE_SIM_SEED names it.
std::vector<std::uint64_t> Seeds(std::uint64_t count) {
  std::uint64_t seed;
  const char* only = std::getenv("TROUPE_SIM_SEED");
  if (only != nullptr && absl::SimpleAtoi(only, &seed)) return {seed};
  std::vector<std::uint64_t> seeds(count);
  for (std::uint64_t i = 0; i < count; ++i) seeds[i] = i;
  return seeds;
}

class SimulationTest : public testing::TestWithParam<int> {
 protected:
  static void ExpectSound(const SmallJobOptions& job) {
    const Outcome& one_rank = OneRank(job.numbers, job.steps);
    for (std::uint64_t seed : Seeds(1000)) {
      SimulationOptions options;
      options.seed = seed;
      const Outcome outcome = Simulate(job, options);
      ASSERT_EQ(Verdict(job, outcome, one_rank), "") << ReplayCommand(seed);
    }
  }
};

TEST_P(SimulationTest, EqualsOneRankToTheBitOnExactNumbers) {
  ExpectSound({GetParam(), Numbers::kExact, 2});
}

TEST_P(SimulationTest, RanksAreBitIdenticalAndCloseToOneRankOnFloats) {
  ExpectSound({GetParam(), Numbers::kFloat, 3});
}

TEST_P(SimulationTest, UpdatingWithTheReductionIsExactToo) {
  ExpectSound({GetParam(), Numbers::kExact, 2, /*fused=*/true});
}

TEST_P(SimulationTest, UpdatingWithTheReductionOnFloatsToo) {
  ExpectSound({GetParam(), Numbers::kFloat, 3, /*fused=*/true});
}

INSTANTIATE_TEST_SUITE_P(Ranks, SimulationTest, testing::Values(2, 3, 4, 8),
                         testing::PrintToStringParamName());

TEST(SimulationTest, OneRankLearnsAndIsNotTrivial) {
  const Outcome& outcome = OneRank(Numbers::kFloat, 3);
  ASSERT_TRUE(outcome.result.ok()) << outcome.result.status();
  EXPECT_GT(
      LargestDifference(outcome.parameters[0][0], outcome.parameters[2][0]),
      1e-4);
}

TEST(SimulationTest, TheSameSeedGivesTheSameTrace) {
  for (std::uint64_t seed : {1, 17, 4711}) {
    SimulationOptions options;
    options.seed = seed;
    const SmallJobOptions job = {4, Numbers::kFloat, 3};
    const std::uint64_t hash = Simulate(job, options).hash;
    EXPECT_EQ(Simulate(job, options).hash, hash) << "seed " << seed;
  }
}

TEST(SimulationTest, SeedsGiveDifferentTraces) {
  std::map<std::uint64_t, int> hashes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimulationOptions options;
    options.seed = seed;
    ++hashes[Simulate({2, Numbers::kFloat, 1}, options).hash];
  }
  EXPECT_EQ(hashes.size(), 50u);
}

}  // namespace
}  // namespace troupe::actors
