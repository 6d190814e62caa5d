// A whole job on GPUs, emulated (third_party/emulated_cuda): the product's own
// kernels, device and groups, in all orders that streams and events permit. A
// job has the same bits whatever the order, and the CPU's numbers.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "comm/device/device_group.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"
#include "tests/comm/wrapped_communicator.h"
#include "tests/nn/kernels/cuda/emulated_device_fixture.h"

namespace troupe::actors {
namespace {

using nn::cuda::EmulatedWorld;

constexpr std::int64_t kSteps = 3;

// LeNet with momentum, an evaluation at its end.
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

struct Outcome {
  absl::Status status;
  Reports reports;

  double evaluation() const {
    return reports.evaluations.empty() ? -1 : reports.evaluations.back().loss;
  }
  bool operator==(const Outcome& other) const {
    return status == other.status &&
           reports.losses() == other.reports.losses() &&
           evaluation() == other.evaluation();
  }
};

// In one thread, which makes the seed's order the only one.
Outcome Simulated(const JobSpec& spec, std::uint64_t seed,
                  comm::GroupFactory make_group = nullptr) {
  emulated_cuda::Options gpus = EmulatedWorld::OptionsOf(seed);
  gpus.devices = std::max(gpus.devices, spec.plan.mesh.size());
  EmulatedWorld world(gpus);
  // Of a planted bug only the bits are asked.
  if (make_group) world.ExpectBroken();
  SimulationOptions options;
  options.seed = seed;
  options.make_group = std::move(make_group);
  Outcome outcome;
  outcome.status = Simulation(spec, options).Run(&outcome.reports).status();
  return outcome;
}

Outcome OnTheCpu(JobSpec spec) {
  spec.device = nn::Device{};
  Outcome outcome;
  outcome.status = RunJob(spec, &outcome.reports).status();
  return outcome;
}

void ExpectClose(const Outcome& got, const Outcome& want) {
  ASSERT_TRUE(got.status.ok()) << got.status;
  ASSERT_TRUE(want.status.ok()) << want.status;
  const std::vector<double> a = got.reports.losses();
  const std::vector<double> b = want.reports.losses();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
  EXPECT_NEAR(got.evaluation(), want.evaluation(), 1e-5);
}

// A few orders in every run; 500 of them:
//   bazel test //tests/actors/jobs:cuda_job_test --test_timeout=3600
//     --test_filter='*Gpu*:*Stages*' --test_env=TROUPE_SIM_TIMES=25
constexpr std::uint64_t kOrders = 20;

void ExpectTheSameBits(const JobSpec& spec) {
  const Outcome first = Simulated(spec, 0);
  ExpectClose(first, OnTheCpu(spec));
  const std::vector<std::uint64_t> seeds = Seeds(kOrders);
  for (std::uint64_t seed : seeds) {
    const Outcome outcome = Simulated(spec, seed);
    ASSERT_TRUE(outcome.status.ok())
        << "seed " << seed << ": " << outcome.status << ReplayCommand(seed);
    ASSERT_TRUE(outcome == first) << "seed " << seed << ReplayCommand(seed);
  }
  testing::Test::RecordProperty("seeds", static_cast<int>(seeds.size()));
}

TEST(CudaJobTest, OneRankOnOneGpu) {
  ExpectTheSameBits(LeNetJob("cuda", 1, 1));
}

TEST(CudaJobTest, TwoRanksOnOneGpu) {
  ExpectTheSameBits(LeNetJob("cuda:0", 2, 1));
}

TEST(CudaJobTest, TwoRanksOnTwoGpus) {
  ExpectTheSameBits(LeNetJob("cuda", 2, 1));
}

TEST(CudaJobTest, FourRanksOnOneGpu) {
  ExpectTheSameBits(LeNetJob("cuda:0", 4, 1));
}

TEST(CudaJobTest, FourRanksOnFourGpus) {
  ExpectTheSameBits(LeNetJob("cuda", 4, 1));
}

TEST(CudaJobTest, TwoStages) { ExpectTheSameBits(LeNetJob("cuda", 1, 2)); }

TEST(CudaJobTest, TwoReplicasOfTwoStages) {
  ExpectTheSameBits(LeNetJob("cuda:1", 2, 2));
}

TEST(CudaJobTest, TwoReplicasOfTwoStagesOnFourGpus) {
  ExpectTheSameBits(LeNetJob("cuda", 2, 2));
}

TEST(CudaJobTest, WhereRanksLiveChangesNoBit) {
  EXPECT_TRUE(Simulated(LeNetJob("cuda", 2, 1), 3) ==
              Simulated(LeNetJob("cuda:0", 2, 1), 4));
}

TEST(CudaJobTest, OnThreadsOfItsOwn) {
  const Outcome want = Simulated(LeNetJob("cuda", 2, 1), 0);
  for (std::uint64_t seed : Seeds(5)) {
    emulated_cuda::Options options = EmulatedWorld::OptionsOf(seed);
    options.stall_seconds = 20;  // another thread may be about to go on
    const EmulatedWorld world(options);
    Outcome outcome;
    outcome.status = RunJob(LeNetJob("cuda", 2, 1), &outcome.reports).status();
    EXPECT_TRUE(outcome == want) << "seed " << seed << outcome.status;
  }
}

TEST(CudaJobTest, CheckpointsTravel) {
  JobSpec longer = LeNetJob("cuda", /*dp=*/2, /*pp=*/1);
  longer.steps = kSteps + 2;
  const Outcome want = Simulated(longer, 0);
  ASSERT_TRUE(want.status.ok()) << want.status;
  for (std::uint64_t seed : Seeds(10)) {
    JobSpec first = LeNetJob("cuda", /*dp=*/2, /*pp=*/1);
    first.checkpoint.dir = FreshFolder("checkpoints");
    ASSERT_TRUE(Simulated(first, seed).status.ok());
    JobSpec second = longer;
    second.checkpoint = first.checkpoint;
    second.checkpoint.resume = true;
    const Outcome resumed = Simulated(second, seed + 1000);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    ASSERT_EQ(resumed.reports.steps.size(), 2u);
    EXPECT_EQ(resumed.reports.losses().back(), want.reports.losses().back())
        << seed;
  }
}

TEST(CudaJobTest, ALossThatIsNoNumberEndsTheJob) {
  for (std::uint64_t seed : Seeds(10)) {
    JobSpec spec = LeNetJob("cuda", /*dp=*/2, /*pp=*/1);
    spec.loss_scale = 0x1p1000;
    const Outcome outcome = Simulated(spec, seed);
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kFailedPrecondition)
        << outcome.status;
  }
}

TEST(CudaJobTest, EachRankNeedsAGpu) {
  const EmulatedWorld world(1);
  const absl::Status status = RunJob(LeNetJob("cuda", 4, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "4 ranks of this host need a GPU each, and this process sees 2 "
            "GPUs; run fewer ranks, or put all on one with device = "
            "\"cuda:0\"");
}

TEST(CudaJobTest, NamesAGpuThatIsNotThere) {
  const EmulatedWorld world(1);
  const absl::Status status = RunJob(LeNetJob("cuda:7", 1, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "there is no cuda:7: this process sees 2 GPUs "
            "(CUDA_VISIBLE_DEVICES chooses which)");
}

// --- Planted bugs ---

// Reductions that do not wait for the gradients that they add up.
class TooEarly : public comm::WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;
  absl::StatusOr<comm::Event> Start(const comm::Collective& collective,
                                    comm::Event) override {
    return inner().Start(collective, comm::Event());
  }
};

// Reductions that say that they are done when they are not.
class DoneAtOnce : public comm::WrappedCommunicator {
 public:
  using WrappedCommunicator::WrappedCommunicator;
  absl::StatusOr<comm::Event> Start(const comm::Collective& collective,
                                    comm::Event after) override {
    TROUPE_RETURN_IF_ERROR(
        inner().Start(collective, std::move(after)).status());
    return comm::Event();
  }
};

// The first seed that shows the bug.
template <typename Bug>
std::uint64_t FirstSeedThatFinds() {
  const JobSpec spec = LeNetJob("cuda:0", /*dp=*/2, /*pp=*/1);
  const Outcome want = Simulated(spec, 0);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Outcome outcome =
        Simulated(spec, seed, [](const comm::LocalGroupOptions& options) {
          comm::Group group = comm::MakeDeviceGroup(options);
          for (auto& rank : group)
            rank = std::make_unique<Bug>(std::move(rank));
          return group;
        });
    if (!(outcome == want)) return seed;
  }
  return 50;
}

TEST(CudaJobTest, FindsAReductionThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<TooEarly>(), 50u);
}

TEST(CudaJobTest, FindsAnUpdateThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<DoneAtOnce>(), 50u);
}

}  // namespace
}  // namespace troupe::actors
