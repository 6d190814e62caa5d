// The plan of a job holds what changes its bits, so that a comparison names it.

#include <memory>
#include <string>
#include <vector>

#include "actors/job_setup.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/open_kernels.h"
#include "nn/modules/embedding.h"
#include "pipeline/plan_diff.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Lines = std::vector<std::string>;

pipeline::Plan PlanOf(const JobSpec& spec) {
  const auto process = SetUpJob(spec, /*observer=*/nullptr);
  EXPECT_TRUE(process.ok()) << process.status();
  return process.ok() ? *(*process)->plan : pipeline::Plan();
}

TEST(JobPlanTest, NamesTheKernels) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1);
  const pipeline::Plan plan = PlanOf(spec);
  const auto opened = nn::OpenKernels(spec.device, {/*threads=*/1});
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(plan.kernels, (*opened)->Describe());
  spec.kernels = [] {
    nn::CpuKernelOptions plain;
    plain.isa = base::CpuIsa::kPlain;
    plain.onednn = false;
    return nn::CreateCpuKernels(plain);
  };
  const pipeline::Plan other = PlanOf(spec);
  EXPECT_EQ(other.kernels, "cpu:0, plain, 1 thread");
  const Lines lines = pipeline::Diff(plan, other);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].substr(0, 8), "kernels:");
}

TEST(JobPlanTest, NamesTheLossScale) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1);
  const pipeline::Plan plan = PlanOf(spec);
  spec.loss_scale = 0.1;
  EXPECT_EQ(pipeline::Diff(plan, PlanOf(spec)),
            (Lines{"loss_scale: 1.0, 0.1"}));
}

// Where inputs are integers, only the targets show it.
TEST(JobPlanTest, NamesTheTypeOfLoadedFloats) {
  nn::CachingAllocator memory;
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1);
  spec.train = *data::MakeInMemoryDataset(
      nn::Tensor::Zeros({64, 6}, nn::DType::kI64, memory),
      nn::Tensor::Zeros({64, 6, 2}, nn::DType::kF32, memory),
      /*num_classes=*/0);
  spec.test = nullptr;
  spec.model = [] { return std::make_unique<nn::Embedding>(3, 2); };
  const pipeline::Plan plan = PlanOf(spec);
  EXPECT_EQ(plan.dtype, nn::DType::kI64);
  EXPECT_EQ(plan.data_dtype, nn::DType::kF32);
  spec.dtype = nn::DType::kBF16;
  EXPECT_EQ(pipeline::Diff(plan, PlanOf(spec)),
            (Lines{"data_dtype: \"f32\", \"bf16\""}));
}

}  // namespace
}  // namespace troupe::actors
