// Synchronised batch norm in whole jobs gives the same bits under every seed
// and on threads, and the losses and parameters of one rank with the whole
// batch.

#include <cstdint>
#include <memory>
#include <utility>

#include "actors/job.h"
#include "gtest/gtest.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "tests/actors/jobs/batch_split_fixture.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kSteps = 2;

// Returns a job with linear, batch norm with a ReLU, linear, batch norm and
// linear, in f64; one micro-batch per rank.
JobSpec NormedJob(int ranks) {
  JobSpec spec = SmallJob({ranks, Numbers::kExact, kSteps});
  spec.model = []() -> std::unique_ptr<nn::Module> {
    const nn::Linear::Options f64 = {/*bias=*/true, nn::DType::kF64};
    nn::BatchNorm::Options norm;
    norm.dtype = nn::DType::kF64;
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(4, 6, f64);
    norm.relu = true;
    model->Append<nn::BatchNorm1d>(6, norm);
    model->Append<nn::Linear>(6, 6, f64);
    norm.relu = false;
    model->Append<nn::BatchNorm1d>(6, norm);
    model->Append<nn::Linear>(6, 2, f64);
    return nn::ConvertSyncBatchNorm(std::move(model));
  };
  spec.plan.micro_batch_size = 0;  // one micro-batch per rank
  return spec;
}

TEST(SyncBatchNormJob, GivesTheSameBitsUnderEverySeed) {
  const JobSpec spec = NormedJob(4);
  const SimulatedRun expected = Simulate(spec, /*seed=*/0);
  ASSERT_TRUE(expected.result.ok()) << expected.result.status();
  ASSERT_EQ(expected.reports.steps.size(), static_cast<std::size_t>(kSteps));
  for (std::uint64_t seed : Seeds(100)) {
    ASSERT_EQ(Difference(Simulate(spec, seed), expected), "")
        << ReplayCommand(seed);
  }
  EXPECT_EQ(ReportsOf(spec).losses(), expected.reports.losses());
}

TEST(SyncBatchNormJob, EqualsOneRankWithTheWholeBatch) {
  const TrainedValues one = TrainedValuesOf(NormedJob(1));
  ASSERT_EQ(one.losses.size(), static_cast<std::size_t>(kSteps));
  for (int ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    ExpectNear(TrainedValuesOf(NormedJob(ranks)), one, /*tolerance=*/1e-9);
  }
}

}  // namespace
}  // namespace troupe::actors
