// Gradients that are summed over replicas in another dtype than their own
// (PlanOptions::reduction_dtype).

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "actors/job.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/ops/loss.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "tests/actors/jobs/queued_job.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/actors/sim/small_job.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// Returns a job with one weight w, which begins as 0, and samples with input 1
// and target t: the gradient of a sample's squared error is 2 (w - t). Each
// rank has one sample; a step has all.
JobSpec OneWeightJob(const std::vector<float>& targets) {
  const auto n = static_cast<std::int64_t>(targets.size());
  nn::CachingAllocator allocator;
  nn::Tensor x = nn::Tensor::Empty({n, 1}, nn::DType::kF32, allocator);
  nn::Tensor t = nn::Tensor::Empty({n, 1}, nn::DType::kF32, allocator);
  for (std::int64_t i = 0; i < n; ++i) {
    x.data<float>()[i] = 1;
    t.data<float>()[i] = targets[i];
  }
  JobSpec spec;
  spec.train = *data::MakeInMemoryDataset(x, t, /*num_classes=*/0);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Linear>(1, 1, nn::Linear::Options{/*bias=*/false});
    for (nn::Parameter* parameter : model->Parameters()) {
      parameter->init = nn::Initializer::Constant(0);
    }
    return model;
  };
  spec.loss = [](nn::Context& ctx, const nn::Tensor& y, const nn::Tensor& t) {
    return nn::ops::MeanSquaredError(ctx, y, t);
  };
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 1.0 / 256;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.shuffle = false;
  spec.steps = 2;
  spec.timeout = absl::Seconds(60);
  spec.plan.mesh = pipeline::Mesh(static_cast<int>(n));
  spec.plan.global_batch_size = n;
  return spec;
}

// Returns the loss of a step with the weight `w`.
double LossOf(double w, const std::vector<float>& targets) {
  double sum = 0;
  for (const float t : targets) sum += (w - t) * (w - t);
  return sum / double(targets.size());
}

// Expects the first step's gradients to add up to `sum`, by the loss of the
// second step, where w = -lr * sum / count. The losses of other sums in these
// tests differ by at least 0.1.
void ExpectSum(double sum, const std::vector<float>& targets,
               std::optional<nn::DType> dtype, std::int64_t inline_bytes) {
  JobSpec spec = OneWeightJob(targets);
  spec.plan.reduction_dtype = dtype;
  spec.plan.inline_bytes = inline_bytes;
  const double w = -sum / 256 / double(targets.size());
  EXPECT_NEAR(ReportsOf(spec).losses()[1], LossOf(w, targets), 0.01)
      << "inline bytes " << inline_bytes;
}

// Each gradient is 257, which bf16 rounds to 256.
TEST(ReductionDTypeTest, GradientsAreRoundedBeforeTheyAreAdded) {
  const std::vector<float> targets(2, -128.5);
  for (const std::int64_t inline_bytes : {0, 1 << 20}) {
    ExpectSum(514, targets, std::nullopt, inline_bytes);
    ExpectSum(514, targets, nn::DType::kF32, inline_bytes);
    ExpectSum(512, targets, nn::DType::kBF16, inline_bytes);
    ExpectSum(514, targets, nn::DType::kF16, inline_bytes);
  }
}

// In (256 + 1) + (1 + 1) the first sum is a tie, and is rounded to 256. If the
// whole sum of 259 was rounded once, it would be 260.
TEST(ReductionDTypeTest, EachSumIsRounded) {
  const std::vector<float> targets = {-128, -0.5, -0.5, -0.5};
  for (const std::int64_t inline_bytes : {0, 1 << 20}) {
    ExpectSum(259, targets, std::nullopt, inline_bytes);
    ExpectSum(258, targets, nn::DType::kBF16, inline_bytes);
  }
}

TEST(ReductionDTypeTest, TheDTypeOfTheGradientsChangesNoBit) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/6);
  const Reports plain = ReportsOf(spec);
  spec.plan.reduction_dtype = nn::DType::kF32;
  EXPECT_EQ(ReportsOf(spec).losses(), plain.losses());
  spec.plan.reduction_dtype = nn::DType::kBF16;
  EXPECT_NE(ReportsOf(spec).losses(), plain.losses());
}

TEST(ReductionDTypeTest, OneReplicaReducesNothing) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/4);
  const Reports plain = ReportsOf(spec);
  spec.plan.reduction_dtype = nn::DType::kBF16;
  EXPECT_EQ(ReportsOf(spec).losses(), plain.losses());
}

TEST(ReductionDTypeTest, SumsOfAnIntegerAreRefused) {
  JobSpec spec = TinyCnnJob(/*dp=*/2, /*steps=*/1);
  spec.plan.reduction_dtype = nn::DType::kI32;
  EXPECT_EQ(RunJob(spec).status().message(),
            "plan: reduction_dtype is no floating type");
}

// --- The same bits under every seed, whatever overlaps ---

JobSpec RoundedJob(const std::function<void(JobSpec&)>& edit) {
  SmallJobOptions options;
  options.ranks = 2;
  options.steps = 4;
  JobSpec spec = SmallJob(options);
  spec.plan.reduction_dtype = nn::DType::kBF16;
  if (edit) edit(spec);
  return spec;
}

void ExpectOneOutcomeUnderEverySeed(const JobSpec& spec, std::uint64_t seeds) {
  const SimulatedRun want = Simulate(spec, {});
  ASSERT_TRUE(want.result.ok()) << want.result.status();
  for (std::uint64_t seed : Seeds(seeds)) {
    const SimulatedRun run = Simulate(spec, seed);
    ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
  }
}

TEST(ReductionDTypeTest, SimulatedReplicas) {
  ExpectOneOutcomeUnderEverySeed(RoundedJob(nullptr), 200);
}

TEST(ReductionDTypeTest, SimulatedStepsThatOverlap) {
  const auto across = [](JobSpec& spec) { spec.plan.cross_step = true; };
  const SimulatedRun want = Simulate(RoundedJob(nullptr), {});
  const JobSpec spec = RoundedJob(across);
  for (std::uint64_t seed : Seeds(200)) {
    ASSERT_EQ(Difference(Simulate(spec, seed), want), "")
        << ReplayCommand(seed);
  }
}

TEST(ReductionDTypeTest, SimulatedStagesThatLookAtAllGradients) {
  ExpectOneOutcomeUnderEverySeed(RoundedJob([](JobSpec& spec) {
                                   spec.plan.mesh =
                                       pipeline::Mesh(/*dp=*/2, /*pp=*/2);
                                   spec.plan.cuts = {2};
                                   spec.plan.micro_batch_size = 3;
                                   spec.optimizer = [] {
                                     nn::AdamOptions adam;
                                     adam.common.skip_nonfinite = true;
                                     adam.common.clip_grad_norm = 0.1;
                                     return std::make_unique<nn::Adam>(adam);
                                   };
                                 }),
                                 100);
}

TEST(ReductionDTypeTest, OnDevicesThatWorkLater) {
  for (const int pp : {1, 2}) {
    JobSpec spec = LeNetJob(/*dp=*/2, pp);
    spec.plan.reduction_dtype = nn::DType::kBF16;
    const Outcome want = OnTheCpu(spec);
    ASSERT_TRUE(want.status.ok()) << want.status;
    for (std::uint64_t seed : Seeds(30)) {
      ASSERT_TRUE(OnQueuedDevices(spec, seed) == want) << ReplayCommand(seed);
    }
  }
}

}  // namespace
}  // namespace troupe::actors
