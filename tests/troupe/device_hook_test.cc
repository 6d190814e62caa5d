// Communication hooks on devices with queues, and bugs planted in the groups
// that programs use there.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/setup/group_makers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/comm/unordered_communicators.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"
#include "tests/troupe/device_ranks.h"
#include "tests/troupe/digits_loop.h"
#include "troupe/simulate.h"
#include "troupe/troupe.h"

namespace troupe {
namespace {

using nn::cuda::EmulatedWorld;
using ::testing::AllOf;
using ::testing::HasSubstr;

// More of each: TROUPE_SIM_TIMES.
constexpr int kSeeds = 10;
constexpr int kGpuSeeds = 4;

using Prepare = std::function<void(Rank& rank, DDP& ddp)>;

DigitsOptions With(Prepare prepare) {
  DigitsOptions options;
  options.prepare = std::move(prepare);
  return options;
}

// Hooks that compute what DDP does without one.
std::vector<Prepare> Averages() {
  return {
      [](Rank&, DDP& ddp) { ddp.RegisterCommHook(AllReduceHook); },
      [](Rank& rank, DDP& ddp) {
        ddp.RegisterCommHook([&rank](Group& group, GradBucket& bucket) {
          group.AllReduce(bucket.buffer());
          Var sums(rank.context(), bucket.buffer());
          sums /= group.size();
        });
      },
      [](Rank& rank, DDP& ddp) {
        ddp.RegisterCommHook([&rank](Group& group, GradBucket& bucket) {
          const Work sum = group.StartAllReduce(bucket.buffer());
          return BucketFuture(
              sum, [&rank, buffer = bucket.buffer(), n = group.size()] {
                Var sums(rank.context(), buffer);
                sums /= n;
              });
        });
      },
  };
}

TEST(DeviceHookTest, HooksReduceOnQueuedDevices) {
  DigitsRun cpu;
  ASSERT_TRUE(Spawn(DigitsLoop(Rule::kSgd, &cpu), PlainRanks(2)).ok());
  for (const Prepare& prepare : Averages()) {
    DigitsRun threads;
    const Program program = DigitsLoop(Rule::kSgd, &threads, With(prepare));
    const absl::Status status = Spawn(program, QueuedRanks(2, /*seed=*/1));
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(threads.parameters, cpu.parameters);
    for (const std::uint64_t seed : Seeds(kSeeds)) {
      DigitsRun run;
      const SimulatedRun simulated =
          Simulate(DigitsLoop(Rule::kSgd, &run, With(prepare)),
                   QueuedRanks(2, seed), {seed});
      ASSERT_TRUE(simulated.status.ok())
          << simulated.status << ReplayCommand(seed);
      ASSERT_EQ(run.losses, cpu.losses) << ReplayCommand(seed);
      ASSERT_EQ(run.parameters, cpu.parameters) << ReplayCommand(seed);
    }
  }
}

TEST(DeviceHookTest, HooksReduceOnGpus) {
  DigitsRun plain;
  {
    const EmulatedWorld world(actors::EmulatedGpus(/*seed=*/0, 2));
    ASSERT_TRUE(Simulate(DigitsLoop(Rule::kSgd, &plain), GpuRanks(2, "cuda"))
                    .status.ok());
  }
  for (const Prepare& prepare : Averages()) {
    for (const std::uint64_t seed : Seeds(kGpuSeeds)) {
      const EmulatedWorld world(actors::EmulatedGpus(seed, 2));
      DigitsRun run;
      const SimulatedRun simulated =
          Simulate(DigitsLoop(Rule::kSgd, &run, With(prepare)),
                   GpuRanks(2, "cuda"), {seed});
      ASSERT_TRUE(simulated.status.ok())
          << simulated.status << ReplayCommand(seed);
      ASSERT_EQ(run.parameters, plain.parameters) << ReplayCommand(seed);
    }
  }
}

TEST(DeviceHookTest, TheHostOfAHookReadsNoGradients) {
  const auto prepare = [](Rank&, DDP& ddp) {
    ddp.RegisterCommHook([](Group&, GradBucket& bucket) {
      bucket.buffer().span<float>()[0] = 0;
    });
  };
  DigitsRun run;
  const absl::Status status =
      Spawn(DigitsLoop(Rule::kSgd, &run, With(prepare)), QueuedRanks(1, 1));
  EXPECT_THAT(MessageOf(status),
              AllOf(HasSubstr("communication hook, bucket 0"),
                    HasSubstr("is not memory of the host")));
}

// --- Planted bugs ---

// Returns the first seed that reveals the bug.
template <typename Bug>
std::uint64_t FirstSeedThatFinds() {
  DigitsRun cpu;
  EXPECT_TRUE(Spawn(DigitsLoop(Rule::kSgd, &cpu), PlainRanks(2)).ok());
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    DigitsRun run;
    const SpawnOptions options = QueuedRanks(2, seed);
    ProgramSimulation simulation = {seed};
    simulation.make_group =
        [device = options.device](const comm::LocalGroupOptions& group) {
          return comm::WithBug<Bug>(actors::GroupsOn(device)(group));
        };
    const SimulatedRun simulated =
        Simulate(DigitsLoop(Rule::kSgd, &run), options, simulation);
    if (!simulated.status.ok() || run.parameters != cpu.parameters) return seed;
  }
  return 50;
}

TEST(DeviceHookTest, FindsACollectiveThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<comm::TooEarly>(), 50u);
}

TEST(DeviceHookTest, FindsAReaderThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<comm::DoneAtOnce>(), 50u);
}

}  // namespace
}  // namespace troupe
