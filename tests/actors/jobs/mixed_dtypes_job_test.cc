// A model of two dtypes in a job: each dtype has an arena, a bucket has one
// dtype, and the 16-bit part has f32 gradients and master values.

#include <memory>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "actors/job.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/modules/flatten.h"
#include "nn/modules/linear.h"
#include "nn/modules/relu.h"
#include "nn/modules/sequential.h"
#include "nn/ops/cast.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

class Cast : public nn::Module {
 public:
  explicit Cast(nn::DType to) : to_(to) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    return nn::ops::Cast(ctx, x, to_);
  }

 private:
  const nn::DType to_;
};

JobSpec MixedJob(int dp, std::int64_t steps) {
  JobSpec spec = TinyCnnJob(dp, steps);
  spec.model = [] {
    auto model = std::make_unique<nn::Sequential>();
    model->Append<nn::Flatten>();
    model->Append<nn::Linear>(784, 32);
    model->Append<Cast>(nn::DType::kBF16);
    model->Append<nn::Linear>(32, 32,
                              nn::Linear::Options{true, nn::DType::kBF16});
    model->Append<nn::ReLU>();
    model->Append<Cast>(nn::DType::kF32);
    model->Append<nn::Linear>(32, 10);
    return model;
  };
  spec.optimizer = [] {
    nn::SgdOptions sgd;
    sgd.lr = 0.05;
    sgd.momentum = 0.9;
    sgd.common.f32_master = true;
    return std::make_unique<nn::Sgd>(sgd);
  };
  spec.plan.micro_batch_size = 8;
  spec.plan.grad_dtype = nn::DType::kF32;
  return spec;
}

std::vector<double> LossesOf(const JobSpec& spec, Reports* reports) {
  const absl::StatusOr<JobResult> result = RunJob(spec, reports);
  EXPECT_TRUE(result.ok()) << result.status();
  return reports->losses();
}

TEST(MixedDTypesJobTest, EachBucketHasOneDType) {
  Reports reports;
  LossesOf(MixedJob(/*dp=*/1, /*steps=*/1), &reports);
  const pipeline::StagePlan& stage = reports.info.plan.stages[0];
  ASSERT_EQ(stage.parameters.size(), 6u);
  const std::vector<std::vector<int>> want = {{3, 2}, {5, 4, 1, 0}};
  EXPECT_EQ(stage.buckets, want) << reports.info.plan.ToString();
}

TEST(MixedDTypesJobTest, TrainsOnRanksAndInStages) {
  Reports one, two, stages;
  const std::vector<double> losses = LossesOf(MixedJob(1, 20), &one);
  EXPECT_LT(losses.back(), losses.front());
  LossesOf(MixedJob(2, 20), &two);
  EXPECT_NEAR(two.losses().back(), losses.back(), 0.05);
  JobSpec cut = MixedJob(1, 20);
  cut.plan.mesh = pipeline::Mesh(1, 2);
  cut.plan.cuts = {3};  // bf16 between the stages
  EXPECT_EQ(LossesOf(cut, &stages), losses);
  EXPECT_EQ(stages.info.plan.stages[0].output_dtype, nn::DType::kBF16);
}

TEST(MixedDTypesJobTest, GoesOnFromACheckpointWithTheSameBits) {
  Reports whole, first, rest;
  const std::vector<double> losses = LossesOf(MixedJob(2, 8), &whole);
  const std::string dir = FreshFolder("mixed");
  for (const std::int64_t steps : {4, 8}) {
    JobSpec spec = MixedJob(2, steps);
    spec.checkpoint.dir = dir;
    spec.checkpoint.resume = true;
    LossesOf(spec, steps == 4 ? &first : &rest);
  }
  EXPECT_EQ(rest.losses(),
            std::vector<double>(losses.begin() + 4, losses.end()));
  base::PosixFileSystem files;
  const Checkpoint saved =
      *Checkpoint::Open(files, *FindLatestCheckpoint(files, dir));
  nn::CachingAllocator memory;
  const nn::Tensor master =
      nn::Tensor::Empty({32, 32}, nn::DType::kF32, memory);
  EXPECT_TRUE(saved.ReadOptimizer("3.weight.master_value", master).ok());
  EXPECT_EQ(saved.OptimizerNames().size(), 6u + 2u);
}

}  // namespace
}  // namespace troupe::actors
