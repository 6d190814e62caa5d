// Layers that all-reduce, or reduce-scatter and gather, in the middle of
// forward and backward, in whole jobs under the seeded scheduler and on
// threads, always give the same bits.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "tests/actors/engine/synced_center.h"
#include "tests/actors/jobs/batch_split_fixture.h"
#include "tests/actors/sim/seed_sweep.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kSteps = 2;

// Returns a job with linear, center, ReLU, linear, center and linear; one
// micro-batch per rank.
JobSpec CenteredJob(int ranks,
                    std::function<absl::Status()> before_reduce = nullptr,
                    const std::string& axis = "dp",
                    SyncedCenter::Way way = SyncedCenter::Way::kAllReduce) {
  JobSpec spec = SmallJob({ranks, Numbers::kExact, kSteps});
  spec.model = [before_reduce, axis, way] {
    const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(4, 6, f64);
    model->Append<SyncedCenter>(before_reduce, axis, way);
    model->Append<nn::ReLU>();
    model->Append<nn::Linear>(6, 6, f64);
    model->Append<SyncedCenter>(before_reduce, axis, way);
    model->Append<nn::Linear>(6, 2, f64);
    return model;
  };
  spec.plan.micro_batch_size = 0;  // one micro-batch per rank
  return spec;
}

TEST(LayerCollectivesTest, AThousandSeedsGiveTheSameBits) {
  const JobSpec spec = CenteredJob(kRanks);
  const SimulatedRun expected = Simulate(spec, /*seed=*/0);
  ASSERT_TRUE(expected.result.ok()) << expected.result.status();
  ASSERT_EQ(expected.reports.steps.size(), static_cast<std::size_t>(kSteps));
  ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/1000, expected), "");
}

TEST(LayerCollectivesTest, BesideInlineReductionsToo) {
  JobSpec spec = CenteredJob(kRanks);
  const SimulatedRun expected = Simulate(spec, /*seed=*/0);
  spec.plan.inline_bytes = 1 << 30;
  ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/200, expected), "");
}

// A reduce-scatter and a gather add up in the tree of an all-reduce.
TEST(LayerCollectivesTest, AScatteredSumHasTheSameBits) {
  const SimulatedRun expected = Simulate(CenteredJob(kRanks), /*seed=*/0);
  JobSpec spec =
      CenteredJob(kRanks, nullptr, "dp", SyncedCenter::Way::kScatterAndGather);
  ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/300, expected), "");
  spec.plan.inline_bytes = 1 << 30;
  ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/50, expected), "");
  EXPECT_EQ(ReportsOf(spec).losses(), expected.reports.losses());
}

TEST(LayerCollectivesTest, EqualsOneRankWithTheWholeBatch) {
  const TrainedValues many = TrainedValuesOf(CenteredJob(kRanks));
  ASSERT_EQ(many.losses.size(), static_cast<std::size_t>(kSteps));
  ExpectNear(many, TrainedValuesOf(CenteredJob(1)), /*tolerance=*/1e-6);
}

TEST(LayerCollectivesTest, ThreadsGiveTheBitsOfTheSimulation) {
  const SimulatedRun expected = Simulate(CenteredJob(kRanks), /*seed=*/0);
  for (std::int64_t inline_bytes : {0, 1 << 30}) {
    JobSpec spec = CenteredJob(kRanks);
    spec.plan.inline_bytes = inline_bytes;
    EXPECT_EQ(ReportsOf(spec).losses(), expected.reports.losses())
        << inline_bytes;
  }
}

// If the replicas of a stage communicate in its layers, they run micro-batches
// in the same order, whichever activation arrives first.
TEST(LayerCollectivesTest, StagesKeepTheOrderOfTheirReplicas) {
  JobSpec spec = CenteredJob(2);
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {3};
  spec.plan.micro_batch_size = 3;
  const SimulatedRun expected = Simulate(spec, /*seed=*/0);
  ASSERT_TRUE(expected.result.ok()) << expected.result.status();
  ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/200, expected), "");
}

// Returns the job on a mesh whose ranks along tp are copies: their layers
// average over copies of the same samples.
JobSpec CopiedJob(int tp, int dp, int pp) {
  JobSpec spec = CenteredJob(dp, /*before_reduce=*/nullptr, "tp");
  spec.plan.mesh =
      *pipeline::Mesh::Create({{"tp", tp}, {"dp", dp}, {"pp", pp}});
  if (pp == 2) spec.plan.cuts = {3};
  spec.plan.micro_batch_size = 3;
  spec.test = spec.train;
  spec.eval_every = 1;
  return spec;
}

// Losses, parameters and evaluations of ranks along tp count once, in the
// middle of a layer, too.
TEST(LayerCollectivesTest, CopiesAlongAnAxisChangeNoBits) {
  for (const auto& [tp, dp, pp] :
       {std::tuple(2, 1, 1), std::tuple(2, 2, 1), std::tuple(2, 1, 2),
        std::tuple(2, 2, 2), std::tuple(4, 2, 1)}) {
    const SimulatedRun expected = Simulate(CopiedJob(1, dp, pp), /*seed=*/0);
    ASSERT_TRUE(expected.result.ok()) << expected.result.status();
    ASSERT_EQ(expected.reports.evaluations.size(),
              static_cast<std::size_t>(kSteps));
    const JobSpec spec = CopiedJob(tp, dp, pp);
    for (std::uint64_t seed : Seeds(50)) {
      const SimulatedRun run = Simulate(spec, seed);
      ASSERT_EQ(Difference(run, expected), "")
          << spec.plan.mesh.ToString() << ": " << ReplayCommand(seed);
      ASSERT_EQ(run.reports.evaluations.size(),
                expected.reports.evaluations.size());
      for (const EvaluationReport& evaluation : run.reports.evaluations) {
        ASSERT_EQ(evaluation.count, expected.reports.evaluations[0].count)
            << spec.plan.mesh.ToString();
      }
    }
  }
}

// One rank dies while its peers wait for it in the middle of a forward.
TEST(LayerCollectivesTest, APeerThatDiesEndsTheWait) {
  const auto failing = [] {
    return [calls = std::make_shared<std::atomic<int>>(0)]() -> absl::Status {
      // Four ranks call this in two layers, in forward and backward, so that
      // call 20 is in the second step.
      if (calls->fetch_add(1) != 20) return absl::OkStatus();
      return absl::DataLossError("planted");
    };
  };
  for (const std::uint64_t seed : Seeds(200)) {
    const absl::Status status =
        Simulate(CenteredJob(kRanks, failing()), seed).result.status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss)
        << status << ReplayCommand(seed);
    ASSERT_TRUE(absl::StrContains(status.message(), "planted"));
  }
  const absl::Status on_threads =
      RunJob(CenteredJob(kRanks, failing())).status();
  EXPECT_EQ(on_threads.code(), absl::StatusCode::kDataLoss) << on_threads;
}

}  // namespace
}  // namespace troupe::actors
