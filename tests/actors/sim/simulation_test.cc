// Tests whole jobs under the seeded scheduler: 2, 3, 4 and 8 ranks, 1,000 seeds
// each.
//
// Replay of a failing seed: the message of every failure ends with the command.

#include "actors/sim/simulation.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/seed_sweep.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

// Rank 0's parameters by name: arenas of different widths are padded
// differently.
using Parameters = std::map<std::string, std::vector<double>>;

Parameters ParametersOf(const nn::ParameterArena& arena) {
  Parameters parameters;
  for (const nn::ArenaSlot& slot : arena.slots()) {
    const nn::Tensor& value = slot.parameter->value;
    std::vector<double>& doubles = parameters[slot.parameter->name];
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      doubles.push_back(value.dtype() == nn::DType::kF64
                            ? value.data<double>()[i]
                            : value.data<float>()[i]);
    }
  }
  return parameters;
}

struct Outcome {
  SimulatedRun run;
  std::vector<Parameters> values;  // parameters after each step
};

Outcome SimulateWithValues(const SmallJobOptions& job, std::uint64_t seed) {
  Outcome outcome;
  SimulationOptions options;
  options.seed = seed;
  options.after_step = [&](int rank, std::int64_t,
                           const nn::ParameterArena& arena) {
    if (rank == 0) outcome.values.push_back(ParametersOf(arena));
  };
  outcome.run = Simulate(SmallJob(job), options);
  return outcome;
}

double LargestDifference(const Parameters& a, const Parameters& b) {
  double largest = 0;
  for (const auto& [name, values] : a) {
    const std::vector<double>& others = b.at(name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = std::abs(values[i] - others[i]);
      // A NaN differs from everything.
      if (!(difference <= largest)) largest = difference;
    }
  }
  return largest;
}

// Returns the fault of a run, compared with one rank; empty: none.
std::string Verdict(const SmallJobOptions& job, const Outcome& outcome,
                    const Outcome& one_rank) {
  if (job.numbers == Numbers::kExact) {
    return Difference(outcome.run, one_rank.run);
  }
  if (!outcome.run.check.ok()) return outcome.run.check.ToString();
  for (std::int64_t step = 0; step < job.steps; ++step) {
    const double difference =
        LargestDifference(outcome.values[step], one_rank.values[step]);
    if (difference <= 1e-5) continue;
    return absl::StrCat("differs from one rank by ", difference, " after step ",
                        step + 1);
  }
  return "";
}

const Outcome& OneRank(Numbers numbers, std::int64_t steps) {
  static auto* const outcomes = new std::map<Numbers, Outcome>();
  auto [found, fresh] = outcomes->try_emplace(numbers);
  if (fresh) found->second = SimulateWithValues({1, numbers, steps}, 0);
  return found->second;
}

class SimulationTest : public testing::TestWithParam<int> {
 protected:
  static void ExpectSound(const SmallJobOptions& job) {
    const Outcome& one_rank = OneRank(job.numbers, job.steps);
    for (std::uint64_t seed : Seeds(1000)) {
      const Outcome outcome = SimulateWithValues(job, seed);
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

// With accumulation, the gradient of a step is that of its whole global batch.
TEST(SimulationTest, FourMicroBatchesGiveTheBitsOfOneBatch) {
  JobSpec spec = SmallJob({/*ranks=*/1, Numbers::kExact, /*steps=*/2});
  spec.plan.micro_batch_size = kSmallJobBatch;
  const SimulatedRun whole = Simulate(spec, {});
  spec.plan.micro_batch_size = kSmallJobBatch / 4;
  ASSERT_EQ(DifferenceUnderSeeds(spec, 20, whole), "");
}

TEST(SimulationTest, OneRankLearnsAndIsNotTrivial) {
  const Outcome& outcome = OneRank(Numbers::kFloat, 3);
  ASSERT_EQ(outcome.run.check, absl::OkStatus());
  EXPECT_GT(LargestDifference(outcome.values[0], outcome.values[2]), 1e-4);
}

std::uint64_t HashOf(const SmallJobOptions& job, std::uint64_t seed) {
  return SimulateWithValues(job, seed).run.hash;
}

TEST(SimulationTest, TheSameSeedGivesTheSameTrace) {
  for (std::uint64_t seed : {1, 17, 4711}) {
    const SmallJobOptions job = {4, Numbers::kFloat, 3};
    EXPECT_EQ(HashOf(job, seed), HashOf(job, seed)) << "seed " << seed;
  }
}

TEST(SimulationTest, SeedsGiveDifferentTraces) {
  std::map<std::uint64_t, int> hashes;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    ++hashes[HashOf({2, Numbers::kFloat, 1}, seed)];
  }
  EXPECT_EQ(hashes.size(), 50u);
}

}  // namespace
}  // namespace troupe::actors
