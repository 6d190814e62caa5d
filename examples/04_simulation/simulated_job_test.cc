// Tests a job of four ranks in one thread and virtual time. A seed chooses
// which actor runs next: each seed gives another interleaving, and the same
// seed repeats the same run.
//
//   bazel test //examples/04_simulation/...
//
// To replay a seed that fails, run the test with only that seed.

#include <cstdint>

#include "actors/sim/simulation.h"
#include "data/synthetic/synthetic.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"

namespace troupe {
namespace {

constexpr std::int64_t kSteps = 3;
constexpr std::uint64_t kSeeds = 50;

actors::JobSpec SmallJob() {
  data::SyntheticOptions data;
  data.count = 64;
  actors::JobSpec spec;
  spec.train = data::MakeSyntheticDataset(data, "train").value();
  spec.model = [] { return nn::MakeMlp({10, 8, 10}, {}); };
  spec.loss = nn::ops::CrossEntropyLoss();
  spec.optimizer = nn::SgdOptions();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/4);
  spec.plan.global_batch_size = 16;
  // Several small buckets, so that reductions overlap with backward.
  spec.plan.buckets.first_bucket_bytes = 64;
  spec.plan.buckets.bucket_bytes = 256;
  spec.steps = kSteps;
  return spec;
}

TEST(SimulatedJob, EveryInterleavingGivesTheSameBits) {
  const actors::JobSpec spec = SmallJob();
  double first_loss = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    actors::SimulationOptions options;
    options.seed = seed;
    actors::Simulation simulation(spec, options);
    const auto result = simulation.Run();
    ASSERT_TRUE(result.ok()) << result.status();
    // Checks the order of launches, gradients and updates, and that ranks are
    // equal after each step.
    EXPECT_EQ(simulation.Check(), absl::OkStatus());
    if (seed == 0) first_loss = result->loss;
    EXPECT_EQ(result->loss, first_loss) << "not close: equal";
  }
}

TEST(SimulatedJob, ASeedIsARunThatCanBeHadAgain) {
  const actors::JobSpec spec = SmallJob();
  auto hash = [&](std::uint64_t seed) {
    actors::SimulationOptions options;
    options.seed = seed;
    actors::Simulation simulation(spec, options);
    EXPECT_TRUE(simulation.Run().ok());
    return simulation.trace_hash();
  };
  EXPECT_EQ(hash(7), hash(7));
  EXPECT_NE(hash(7), hash(8));
}

}  // namespace
}  // namespace troupe
