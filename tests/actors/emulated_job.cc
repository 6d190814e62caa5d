#include "tests/actors/emulated_job.h"

#include <utility>

#include "actors/sim/simulation.h"
#include "gtest/gtest.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::actors {

using nn::cuda::EmulatedWorld;

JobSpec EmulatedLeNetJob(const std::string& device, int dp, int pp,
                         std::int64_t steps) {
  JobSpec spec = TinyCnnPipeline(dp, pp, steps);
  spec.device = *nn::Device::Parse(device);
  return spec;
}

emulated_cuda::Options EmulatedGpus(std::uint64_t seed, int gpus) {
  emulated_cuda::Options options = EmulatedWorld::OptionsOf(seed);
  options.devices = gpus;
  options.device_bytes = std::size_t{32} << 20;
  return options;
}

EmulatedOutcome SimulatedOnGpus(const JobSpec& spec, std::uint64_t seed,
                                comm::GroupFactory make_group) {
  EmulatedWorld world(EmulatedGpus(seed, spec.plan.mesh.size()));
  if (make_group) world.ExpectBroken();
  SimulationOptions options;
  options.seed = seed;
  options.make_group = std::move(make_group);
  EmulatedOutcome outcome;
  Simulation simulation(spec, options);
  outcome.status = simulation.Run(&outcome.reports).status();
  outcome.order = simulation.plan().reduction_order;
  return outcome;
}

void ExpectTheNumbersOfTheCpu(const Reports& got, JobSpec spec) {
  spec.device = nn::Device{};
  spec.plan.reduction_order = "auto";
  spec.checkpoint = CheckpointOptions();
  const Reports cpu = ReportsOf(spec);
  const std::vector<double> have = got.losses(), want = cpu.losses();
  ASSERT_EQ(have.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(have[i], want[i], 1e-5) << i;
  }
  ASSERT_EQ(got.evaluations.size(), cpu.evaluations.size());
  EXPECT_NEAR(got.evaluations.back().loss, cpu.evaluations.back().loss, 1e-5);
}

void ExpectTheSameBitsInEveryOrder(const JobSpec& spec,
                                   const std::vector<std::uint64_t>& seeds) {
  const EmulatedOutcome first = SimulatedOnGpus(spec, 0);
  ASSERT_TRUE(first.status.ok()) << first.status;
  ExpectTheNumbersOfTheCpu(first.reports, spec);
  for (std::uint64_t seed : seeds) {
    const EmulatedOutcome outcome = SimulatedOnGpus(spec, seed);
    ASSERT_TRUE(outcome.status.ok())
        << "seed " << seed << ": " << outcome.status << ReplayCommand(seed);
    ASSERT_TRUE(outcome == first) << "seed " << seed << ReplayCommand(seed);
  }
  testing::Test::RecordProperty("seeds", static_cast<int>(seeds.size()));
}

void ExpectTheSameBitsOnThreads(const JobSpec& spec,
                                const std::vector<std::uint64_t>& seeds) {
  const EmulatedOutcome want = SimulatedOnGpus(spec, 0);
  for (std::uint64_t seed : seeds) {
    emulated_cuda::Options gpus = EmulatedGpus(seed, spec.plan.mesh.size());
    gpus.stall_seconds = 20;  // another thread may still be about to run
    const EmulatedWorld world(gpus);
    EmulatedOutcome outcome;
    outcome.status = RunJob(spec, &outcome.reports).status();
    EXPECT_TRUE(outcome == want) << "seed " << seed << outcome.status;
  }
}

void ExpectCheckpointsToTravel(const std::vector<std::uint64_t>& seeds) {
  const JobSpec whole =
      EmulatedLeNetJob("cuda", /*dp=*/2, /*pp=*/1, kEmulatedSteps + 2);
  const EmulatedOutcome want = SimulatedOnGpus(whole, 0);
  ASSERT_TRUE(want.status.ok()) << want.status;
  for (std::uint64_t seed : seeds) {
    JobSpec first = EmulatedLeNetJob("cuda", /*dp=*/2, /*pp=*/1);
    first.checkpoint.dir = FreshFolder("checkpoints");
    ASSERT_TRUE(SimulatedOnGpus(first, seed).status.ok());
    JobSpec second = whole;
    second.checkpoint = first.checkpoint;
    second.checkpoint.resume = true;
    const EmulatedOutcome resumed = SimulatedOnGpus(second, seed + 1000);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    ASSERT_EQ(resumed.reports.steps.size(), 2u);
    EXPECT_EQ(resumed.losses().back(), want.losses().back()) << seed;
  }
}

}  // namespace troupe::actors
