// A whole job on emulated GPUs (base/cuda/emulated), with the kernels, device
// and groups of production, in many orders that streams and events permit. A
// job has the same bits in each order, and the CPU's numbers.

#include <cstdint>
#include <map>
#include <string>

#include "absl/types/span.h"
#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "comm/device/device_group.h"
#include "gtest/gtest.h"
#include "tests/actors/emulated_job.h"
#include "tests/base/seeds.h"
#include "tests/comm/unordered_communicators.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::actors {
namespace {

using nn::cuda::EmulatedWorld;

// Number of orders in every run. To run 500 of them:
//   bazel test //tests/actors/jobs:cuda_job_test --test_timeout=3600
//     --test_filter='*Gpu*:*Stages*' --test_env=TROUPE_SIM_TIMES=25
constexpr std::uint64_t kOrders = 20;

void ExpectTheSameBits(const JobSpec& spec) {
  ExpectTheSameBitsInEveryOrder(spec, Seeds(kOrders));
}

TEST(CudaJobTest, OneRankOnOneGpu) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda", 1, 1));
}

TEST(CudaJobTest, TwoRanksOnOneGpu) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda:0", 2, 1));
}

TEST(CudaJobTest, TwoRanksOnTwoGpus) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda", 2, 1));
}

TEST(CudaJobTest, FourRanksOnOneGpu) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda:0", 4, 1));
}

TEST(CudaJobTest, FourRanksOnFourGpus) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda", 4, 1));
}

TEST(CudaJobTest, TwoStages) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda", 1, 2));
}

TEST(CudaJobTest, TwoReplicasOfTwoStages) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda:1", 2, 2));
}

TEST(CudaJobTest, TwoReplicasOfTwoStagesOnFourGpus) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda", 2, 2));
}

TEST(CudaJobTest, WhereRanksLiveChangesNoBit) {
  EXPECT_TRUE(SimulatedOnGpus(EmulatedLeNetJob("cuda", 2, 1), 3) ==
              SimulatedOnGpus(EmulatedLeNetJob("cuda:0", 2, 1), 4));
}

TEST(CudaJobTest, OnThreadsOfItsOwn) {
  ExpectTheSameBitsOnThreads(EmulatedLeNetJob("cuda", 2, 1), Seeds(5));
}

TEST(CudaJobTest, CheckpointsTravel) { ExpectCheckpointsToTravel(Seeds(10)); }

TEST(CudaJobTest, ALossThatIsNoNumberEndsTheJob) {
  for (std::uint64_t seed : Seeds(10)) {
    JobSpec spec = EmulatedLeNetJob("cuda", /*dp=*/2, /*pp=*/1);
    spec.loss_scale = 0x1p1000;
    const EmulatedOutcome outcome = SimulatedOnGpus(spec, seed);
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kFailedPrecondition)
        << outcome.status;
  }
}

TEST(CudaJobTest, EachRankNeedsAGpu) {
  const EmulatedWorld world(1);
  const absl::Status status = RunJob(EmulatedLeNetJob("cuda", 4, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "4 ranks of this host need a GPU each, and this process sees 2 "
            "GPUs; run fewer ranks, or put all on one with device = "
            "\"cuda:0\"");
}

TEST(CudaJobTest, NamesAGpuThatIsNotThere) {
  const EmulatedWorld world(1);
  const absl::Status status = RunJob(EmulatedLeNetJob("cuda:7", 1, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "there is no cuda:7: this process sees 2 GPUs; set "
            "CUDA_VISIBLE_DEVICES to choose which");
}

// Records the driver's count of allocations at each step.
class DriverCalls : public JobObserver {
 public:
  void OnSteps(absl::Span<const StepReport> steps) override {
    for (const StepReport& step : steps) {
      by_step_[step.step] = emulated_cuda::Counts().system_allocations;
    }
  }
  std::uint64_t Until(std::int64_t step) const { return by_step_.at(step); }

 private:
  std::map<std::int64_t, std::uint64_t> by_step_;
};

TEST(CudaJobTest, AsksNothingOfTheDriverInSteadyState) {
  for (int dp : {1, 2}) {
    const EmulatedWorld world(EmulatedGpus(/*seed=*/1, dp));
    DriverCalls calls;
    const auto result =
        Simulation(EmulatedLeNetJob("cuda", dp, 1, /*steps=*/48), {})
            .Run(&calls);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GT(calls.Until(3), 0u);
    EXPECT_EQ(calls.Until(47), calls.Until(32)) << dp;
  }
}

// --- Planted bugs ---

// Returns the first seed that reveals the bug.
template <typename Bug>
std::uint64_t FirstSeedThatFinds() {
  const JobSpec spec = EmulatedLeNetJob("cuda:0", /*dp=*/2, /*pp=*/1);
  const EmulatedOutcome want = SimulatedOnGpus(spec, 0);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const EmulatedOutcome outcome =
        SimulatedOnGpus(spec, seed, [](const comm::LocalGroupOptions& options) {
          return comm::WithBug<Bug>(comm::MakeDeviceGroup(options));
        });
    if (!(outcome == want)) return seed;
  }
  return 50;
}

TEST(CudaJobTest, FindsAReductionThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<comm::TooEarly>(), 50u);
}

TEST(CudaJobTest, FindsAnUpdateThatDoesNotWait) {
  EXPECT_LT(FirstSeedThatFinds<comm::DoneAtOnce>(), 50u);
}

}  // namespace
}  // namespace troupe::actors
