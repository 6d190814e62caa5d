// A whole job whose ranks reduce by NCCL, with GPUs and NCCL emulated: the bits
// are the same in every order of streams and calls, and the numbers agree with
// the CPU's.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/hooks/gathered_reduction.h"
#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "base/cuda/emulated/emulated_nccl.h"
#include "base/field_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/conv2d.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "tests/actors/emulated_job.h"
#include "tests/base/seeds.h"
#include "tests/nn/kernels/cuda/device/emulated_device_fixture.h"

namespace troupe::actors {
namespace {

using nn::cuda::EmulatedWorld;
using testing::HasSubstr;

void ExpectTheSameBits(const JobSpec& spec, std::uint64_t seeds) {
  EXPECT_EQ(SimulatedOnGpus(spec, 0).order, "any");
  ExpectTheSameBitsInEveryOrder(spec, Seeds(seeds));
}

TEST(NcclJobTest, TwoGpus) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda", 2, 1), 40);
}

TEST(NcclJobTest, FourGpus) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda", 4, 1), 15);
}

TEST(NcclJobTest, TwoReplicasOfTwoStages) {
  ExpectTheSameBits(EmulatedLeNetJob("cuda", 2, 2), 15);
}

// The first replica's running statistics are broadcast on the devices, by NCCL
// and by our own group.
TEST(NcclJobTest, ReplicasShareBuffers) {
  JobSpec spec = EmulatedLeNetJob("cuda", 2, 1);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Conv2d>(1, 4, nn::Window2d{5, 5});
    model->Append<nn::BatchNorm2d>(4);
    model->Append<nn::ReLU>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(24 * 24 * 4, 10);
    return model;
  };
  spec.eval_every = 1;
  ExpectTheSameBits(spec, 3);
  spec.plan.reduction_order = "tree";
  ExpectTheSameBitsInEveryOrder(spec, Seeds(3));
}

// A rank's host starts collectives of all layers before its peers start one.
TEST(NcclJobTest, ReplicasSynchroniseNorms) {
  JobSpec spec = EmulatedLeNetJob("cuda", 2, 1);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    for (int i = 0; i < 3; ++i) {
      model->Append<nn::Linear>(i == 0 ? 28 * 28 : 12, 12);
      model->Append<nn::BatchNorm1d>(12);
    }
    model->Append<nn::Linear>(12, 10);
    return nn::ConvertSyncBatchNorm(std::move(model));
  };
  ExpectTheSameBits(spec, 3);
  spec.plan.reduction_order = "tree";
  ExpectTheSameBitsInEveryOrder(spec, Seeds(3));
}

TEST(NcclJobTest, TheTreeIsThereForTheAsking) {
  JobSpec spec = EmulatedLeNetJob("cuda", 2, 1);
  spec.plan.reduction_order = "tree";
  EmulatedOutcome outcome = SimulatedOnGpus(spec, 1);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.order, "tree");
  // Ranks that share a GPU use the tree by default.
  outcome = SimulatedOnGpus(EmulatedLeNetJob("cuda:0", 2, 1), 1);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.order, "tree");
}

// A reduction in two rounds: work of the device between the collectives.
TEST(NcclJobTest, AHookHasRounds) {
  for (const int pp : {1, 2}) {
    JobSpec spec = EmulatedLeNetJob("cuda", 2, pp);
    spec.hook = GatherIn(nn::DType::kBF16);
    ExpectTheSameBits(spec, 5);
  }
}

TEST(NcclJobTest, GradientsAreRegistered) {
  const EmulatedWorld world(EmulatedGpus(1, 2));
  ASSERT_TRUE(Simulation(EmulatedLeNetJob("cuda", 2, 1), {}).Run().ok());
  // Each rank registers its arena.
  EXPECT_EQ(emulated_cuda::RegisteredRanges().ever, 2u);
  EXPECT_EQ(emulated_cuda::RegisteredRanges().now, 0u);
}

TEST(NcclJobTest, OnThreadsOfItsOwn) {
  ExpectTheSameBitsOnThreads(EmulatedLeNetJob("cuda", 2, 1), Seeds(5));
}

TEST(NcclJobTest, CheckpointsTravel) { ExpectCheckpointsToTravel(Seeds(5)); }

// A collective that fails, early or late, ends the job with an error that names
// it.
TEST(NcclJobTest, AFailingCollectiveEndsTheJob) {
  constexpr std::uint64_t kCollectives = 12;  // both ranks, three steps
  for (std::uint64_t seed : Seeds(20)) {
    SCOPED_TRACE(ReplayCommand(seed));
    EmulatedWorld world(EmulatedGpus(seed, 2));
    emulated_cuda::FailCollective(1 + seed % kCollectives, ncclRemoteError);
    // The work that the failed rank's peer has enqueued never runs.
    world.ExpectBroken();
    SimulationOptions options;
    options.seed = seed;
    EmulatedOutcome outcome;
    outcome.status = Simulation(EmulatedLeNetJob("cuda", 2, 1), options)
                         .Run(&outcome.reports)
                         .status();
    EXPECT_EQ(outcome.status.code(), absl::StatusCode::kUnavailable)
        << outcome.status;
    EXPECT_THAT(std::string(outcome.status.message()),
                HasSubstr("of the group: NCCL: remote process exited"));
  }
}

TEST(NcclJobTest, ARankThatNeverJoinsEndsTheJob) {
  emulated_cuda::Options gpus = EmulatedGpus(1, 2);
  gpus.stall_seconds = 20;
  EmulatedWorld world(gpus);
  emulated_cuda::LoseComm(2);
  world.ExpectBroken();
  JobSpec spec = EmulatedLeNetJob("cuda", 2, 1);
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
  EXPECT_EQ(message(EmulatedLeNetJob("cpu", 2, 1), "any"),
            "PlanOptions.reduction_order = \"any\" is for GPUs, and the device "
            "is cpu:0; take \"tree\"");
  EXPECT_EQ(message(EmulatedLeNetJob("cpu", 2, 1), "ring"),
            "PlanOptions.reduction_order = \"ring\", must be \"auto\", "
            "\"tree\" or \"any\"");
}

}  // namespace
}  // namespace troupe::actors
