// A whole job whose ranks reduce by NCCL, both emulated: the bits are the same
// in every order of streams and calls, and the numbers are the CPU's.

#include <cstdint>
#include <string>
#include <vector>

#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "base/field_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/emulated_device_fixture.h"
#include "third_party/emulated_cuda/emulated_nccl.h"

namespace troupe::actors {
namespace {

using nn::cuda::EmulatedWorld;
using testing::HasSubstr;

constexpr std::int64_t kSteps = 3;

JobSpec LeNetJob(const std::string& device, int dp, int pp) {
  JobSpec spec = TinyCnnJob(dp, kSteps);
  spec.device = *nn::Device::Parse(device);
  spec.plan.global_batch_size = 4;
  spec.plan.buckets.bucket_bytes = 20'000;
  spec.plan.mesh = pipeline::Mesh(dp, pp);
  if (pp > 1) {
    spec.plan.cuts = {6};
    spec.plan.micro_batch_size = 2 / dp;
  }
  return spec;
}

emulated_cuda::Options GpusOf(std::uint64_t seed, int gpus) {
  emulated_cuda::Options options = EmulatedWorld::OptionsOf(seed);
  options.devices = gpus;
  options.device_bytes = std::size_t{32} << 20;
  return options;
}

struct Outcome {
  absl::Status status;
  Reports reports;
  std::string order;  // of the plan: how ranks reduce

  std::vector<double> losses() const { return reports.losses(); }
  double evaluation() const {
    return reports.evaluations.empty() ? -1 : reports.evaluations.back().loss;
  }
  bool operator==(const Outcome& other) const {
    return status == other.status && losses() == other.losses() &&
           evaluation() == other.evaluation();
  }
};

// In one thread, which makes the seed's order the only one.
Outcome Simulated(const JobSpec& spec, std::uint64_t seed) {
  const EmulatedWorld world(GpusOf(seed, spec.plan.mesh.size()));
  SimulationOptions options;
  options.seed = seed;
  Outcome outcome;
  Simulation simulation(spec, options);
  outcome.status = simulation.Run(&outcome.reports).status();
  outcome.order = simulation.plan().reduction_order;
  return outcome;
}

Outcome OnTheCpu(JobSpec spec) {
  spec.device = nn::Device{};
  Outcome outcome;
  outcome.status = RunJob(spec, &outcome.reports).status();
  return outcome;
}

void ExpectTheSameBits(const JobSpec& spec, std::uint64_t seeds) {
  const Outcome first = Simulated(spec, 0);
  EXPECT_EQ(first.order, "any");
  const Outcome cpu = OnTheCpu(spec);
  ASSERT_TRUE(first.status.ok()) << first.status;
  ASSERT_EQ(first.losses().size(), cpu.losses().size());
  for (std::size_t i = 0; i < cpu.losses().size(); ++i) {
    EXPECT_NEAR(first.losses()[i], cpu.losses()[i], 1e-5);
  }
  EXPECT_NEAR(first.evaluation(), cpu.evaluation(), 1e-5);
  for (std::uint64_t seed : Seeds(seeds)) {
    const Outcome outcome = Simulated(spec, seed);
    ASSERT_TRUE(outcome.status.ok())
        << "seed " << seed << ": " << outcome.status << ReplayCommand(seed);
    ASSERT_TRUE(outcome == first) << "seed " << seed << ReplayCommand(seed);
  }
}

TEST(NcclJobTest, TwoGpus) { ExpectTheSameBits(LeNetJob("cuda", 2, 1), 40); }

TEST(NcclJobTest, FourGpus) { ExpectTheSameBits(LeNetJob("cuda", 4, 1), 15); }

TEST(NcclJobTest, TwoReplicasOfTwoStages) {
  ExpectTheSameBits(LeNetJob("cuda", 2, 2), 15);
}

TEST(NcclJobTest, TheTreeIsThereForTheAsking) {
  JobSpec spec = LeNetJob("cuda", 2, 1);
  spec.plan.reduction_order = "tree";
  Outcome outcome = Simulated(spec, 1);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.order, "tree");
  // Ranks on one GPU have it anyway.
  outcome = Simulated(LeNetJob("cuda:0", 2, 1), 1);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.order, "tree");
}

TEST(NcclJobTest, OnThreadsOfItsOwn) {
  const Outcome want = Simulated(LeNetJob("cuda", 2, 1), 0);
  for (std::uint64_t seed : Seeds(5)) {
    emulated_cuda::Options options = GpusOf(seed, 2);
    options.stall_seconds = 20;  // another thread may be about to go on
    const EmulatedWorld world(options);
    Outcome outcome;
    outcome.status = RunJob(LeNetJob("cuda", 2, 1), &outcome.reports).status();
    EXPECT_TRUE(outcome == want) << "seed " << seed << outcome.status;
  }
}

TEST(NcclJobTest, CheckpointsTravel) {
  JobSpec longer = LeNetJob("cuda", /*dp=*/2, /*pp=*/1);
  longer.steps = kSteps + 2;
  const Outcome want = Simulated(longer, 0);
  ASSERT_TRUE(want.status.ok()) << want.status;
  for (std::uint64_t seed : Seeds(5)) {
    JobSpec first = LeNetJob("cuda", /*dp=*/2, /*pp=*/1);
    first.checkpoint.dir = FreshFolder("checkpoints");
    ASSERT_TRUE(Simulated(first, seed).status.ok());
    JobSpec second = longer;
    second.checkpoint = first.checkpoint;
    second.checkpoint.resume = true;
    const Outcome resumed = Simulated(second, seed + 1000);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    ASSERT_EQ(resumed.reports.steps.size(), 2u);
    EXPECT_EQ(resumed.losses().back(), want.losses().back()) << seed;
  }
}

// A collective that fails, early or late, ends the job, and names what it was.
TEST(NcclJobTest, AFailingCollectiveEndsTheJob) {
  constexpr std::uint64_t kCollectives = 12;  // of both ranks, in three steps
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    EmulatedWorld world(GpusOf(seed, 2));
    emulated_cuda::FailCollective(1 + seed % kCollectives, ncclRemoteError);
    // What the failed rank's peer has enqueued never runs.
    world.ExpectBroken();
    SimulationOptions options;
    options.seed = seed;
    Outcome outcome;
    outcome.status = Simulation(LeNetJob("cuda", 2, 1), options)
                         .Run(&outcome.reports)
                         .status();
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable)
        << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()),
                HasSubstr("of the group: NCCL: remote process exited"));
  }
}

TEST(NcclJobTest, ARankThatNeverJoinsEndsTheJob) {
  emulated_cuda::Options gpus = GpusOf(1, 2);
  gpus.stall_seconds = 20;
  EmulatedWorld world(gpus);
  emulated_cuda::LoseComm(2);
  world.ExpectBroken();
  JobSpec spec = LeNetJob("cuda", 2, 1);
  spec.timeout = absl::Milliseconds(200);
  const absl::Status status = RunJob(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank"));
}

TEST(NcclJobTest, AnOrderThatCannotBeIsRefused) {
  const auto message = [](JobSpec spec, const std::string& order) {
    spec.plan.reduction_order = order;
    const absl::Status status = RunJob(spec).status();
    EXPECT_EQ(base::FieldsOf(status),
              std::vector<std::string>{
                  base::FieldName<&pipeline::PlanOptions::reduction_order>()});
    return std::string(status.message());
  };
  EXPECT_EQ(message(LeNetJob("cpu", 2, 1), "any"),
            "PlanOptions.reduction_order = \"any\" is for GPUs, and the device "
            "is cpu:0; take \"tree\"");
  EXPECT_EQ(message(LeNetJob("cpu", 2, 1), "ring"),
            "PlanOptions.reduction_order = \"ring\", must be \"auto\", "
            "\"tree\" or \"any\"");
}

}  // namespace
}  // namespace troupe::actors
