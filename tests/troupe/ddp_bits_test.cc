// Loops of one's own have the bits of their job, in threads and under seeds.

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/troupe/digits_loop.h"
#include "tests/troupe/ranks.h"
#include "troupe/simulate.h"

namespace troupe {
namespace {

constexpr int kSeeds = 200;

// Ranks reduce gradients themselves, or their communication strands do.
constexpr std::int64_t kAlwaysInline = std::numeric_limits<std::int64_t>::max();

TEST(DdpBitsTest, ALoopHasTheLossesOfItsJob) {
  for (const Rule rule : {Rule::kSgd, Rule::kAdamW}) {
    for (const int ranks : {1, 2, 4}) {
      for (const std::int64_t inline_bytes : {std::int64_t{0}, kAlwaysInline}) {
        SpawnOptions options = Ranks(ranks);
        options.inline_bytes = inline_bytes;
        DigitsRun run;
        const absl::Status status = Spawn(DigitsLoop(rule, &run), options);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(run.losses, DigitsJobLosses(DigitsJob(rule, ranks)))
            << ranks << " ranks, inline up to " << inline_bytes;
      }
    }
  }
}

TEST(DdpBitsTest, GradientsAreRoundedAsInTheJob) {
  for (const bool exact_mean : {true, false}) {
    for (const nn::DType dtype : {nn::DType::kBF16, nn::DType::kF32}) {
      DigitsOptions options;
      options.ddp.exact_mean = exact_mean;
      options.ddp.reduction_dtype = dtype;
      DigitsRun run;
      const absl::Status status =
          Spawn(DigitsLoop(Rule::kSgd, &run, options), Ranks(2));
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(run.losses, DigitsJobLosses(DigitsJob(Rule::kSgd, 2, dtype)));
      EXPECT_EQ(run.losses == DigitsJobLosses(DigitsJob(Rule::kSgd, 2)),
                dtype == nn::DType::kF32);
    }
  }
}

TEST(DdpBitsTest, StepsInBackwardHaveTheSameBits) {
  for (const Rule rule : {Rule::kSgd, Rule::kAdamW}) {
    for (const int ranks : {1, 2}) {
      for (const bool exact_mean : {false, true}) {
        DigitsOptions options;
        options.ddp.exact_mean = exact_mean;
        DigitsRun want, have;
        ASSERT_TRUE(Spawn(DigitsLoop(rule, &want, options), Ranks(ranks)).ok());
        options.step_in_backward = true;
        const Program program = DigitsLoop(rule, &have, options);
        const absl::Status status = Spawn(program, Ranks(ranks));
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(have.losses, want.losses);
        EXPECT_EQ(have.parameters, want.parameters);
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          have = {};
          const SimulatedRun run = Simulate(program, Ranks(ranks), {seed});
          ASSERT_TRUE(run.status.ok()) << run.status;
          EXPECT_EQ(have.parameters, want.parameters) << "seed " << seed;
        }
      }
    }
  }
}

// Messages take time: a seed chooses both the order of the ranks, which share a
// thread, and the delays. 1,000 seeds of each: TROUPE_SIM_TIMES=5.
TEST(DdpBitsTest, SeedsChangeNoBit) {
  for (const int ranks : {2, 4}) {
    DigitsRun threads;
    ASSERT_TRUE(Spawn(DigitsLoop(Rule::kSgd, &threads), Ranks(ranks)).ok());
    const std::vector<double> job =
        DigitsJobLosses(DigitsJob(Rule::kSgd, ranks));
    std::set<std::uint64_t> traces;
    for (const std::uint64_t seed : Seeds(kSeeds)) {
      DigitsRun run;
      SpawnOptions options = Ranks(ranks);
      options.inline_bytes = seed % 2 == 0 ? 0 : kAlwaysInline;
      const SimulatedRun simulated =
          Simulate(DigitsLoop(Rule::kSgd, &run), options,
                   {seed, /*message_time_max=*/absl::Milliseconds(10)});
      ASSERT_TRUE(simulated.status.ok())
          << simulated.status << ReplayCommand(seed);
      ASSERT_EQ(run.losses, job) << ranks << " ranks" << ReplayCommand(seed);
      ASSERT_EQ(run.parameters, threads.parameters)
          << ranks << " ranks" << ReplayCommand(seed);
      traces.insert(simulated.trace_hash);
    }
    EXPECT_GT(2 * traces.size(), Seeds(kSeeds).size()) << "seeds act alike";
  }
}

// Micro-batches under NoSync() add up to the whole batch.
TEST(DdpBitsTest, NoSyncAddsUp) {
  DigitsRun whole, parts;
  ASSERT_TRUE(Spawn(DigitsLoop(Rule::kSgd, &whole), Ranks(2)).ok());
  DigitsOptions options;
  options.micro_batches = 2;
  const absl::Status status =
      Spawn(DigitsLoop(Rule::kSgd, &parts, options), Ranks(2));
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(parts.losses.size(), whole.losses.size());
  for (int i = 0; i < kDigitsSteps; ++i) {
    // The samples of a rank's second half are another rank's in one batch.
    EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace troupe
