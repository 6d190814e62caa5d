// The plan of a job records all that changes its bits. Checkpoints contain it,
// so that a run that resumes with another plan can report the differences.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "actors/job.h"
#include "actors/setup/job_setup.h"
#include "base/files/file_system.h"
#include "data/in_memory_dataset.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/kernels/open_kernels.h"
#include "nn/modules/embedding.h"
#include "pipeline/plan_diff.h"
#include "pipeline/plan_json.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Lines = std::vector<std::string>;

pipeline::Plan PlanOf(const JobSpec& spec) {
  const absl::StatusOr<JobSetup> setup = SetUpJob(spec, /*observer=*/nullptr);
  EXPECT_TRUE(setup.ok()) << setup.status();
  return setup.ok() ? *setup->process->plan : pipeline::Plan();
}

TEST(JobPlanTest, NamesTheKernels) {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/1);
  const pipeline::Plan plan = PlanOf(spec);
  const auto opened = nn::OpenKernels(spec.device, {});
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

// If inputs are integers, only the targets have this type.
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

class ResumedPlanTest : public testing::Test {
 protected:
  // Trains until `steps`, resuming from the newest checkpoint.
  JobInfo RunUntil(std::int64_t steps, int dp, std::int64_t inline_bytes = 0) {
    JobSpec spec = TinyCnnJob(dp, steps);
    spec.test = nullptr;
    spec.checkpoint.dir = dir_;
    spec.checkpoint.resume = true;
    spec.plan.inline_bytes = inline_bytes;
    Reports reports;
    const absl::StatusOr<JobResult> result = RunJob(spec, &reports);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(reports.losses().size(), 1u);
    newest_ = result.ok() ? result->checkpoint : "";
    return reports.info;
  }

  base::PosixFileSystem files_;
  std::string dir_ = FreshFolder("checkpoints");
  std::string newest_;
};

TEST_F(ResumedPlanTest, ACheckpointHasThePlanOfItsRun) {
  const JobInfo info = RunUntil(/*steps=*/1, /*dp=*/2);
  const auto plan = pipeline::PlanFromJson(FileBytes(newest_ + "/plan.json"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(pipeline::Diff(*plan, info.plan), Lines{});
  EXPECT_EQ(info.plan_changes, Lines{});
}

TEST_F(ResumedPlanTest, TheSamePlanIsNotMentioned) {
  RunUntil(1, /*dp=*/2);
  EXPECT_EQ(RunUntil(2, /*dp=*/2).plan_changes, Lines{});
}

TEST_F(ResumedPlanTest, AnotherPlanIsToldFieldByField) {
  RunUntil(1, /*dp=*/2);
  const JobInfo info = RunUntil(2, /*dp=*/1);
  ASSERT_EQ(info.plan_changes.size(), 5u);
  EXPECT_EQ(info.plan_changes[0], "mesh[dp].size: 2, 1");
  EXPECT_EQ(info.plan_changes[1], "micro_batch_size: 16, 32");
  EXPECT_EQ(info.plan_changes[2], "stages[0].input[0]: 16, 32");
  EXPECT_EQ(info.plan_changes[3], "stages[0].output[0]: 16, 32");
  EXPECT_EQ(info.plan_changes[4].substr(0, 16), "stages[0].flops:");
  // The next run has the same plan.
  EXPECT_EQ(RunUntil(3, /*dp=*/1).plan_changes, Lines{});
}

TEST_F(ResumedPlanTest, AnOldCheckpointHasNoPlanAndIsNotMentioned) {
  RunUntil(1, /*dp=*/2);
  ASSERT_TRUE(files_.RemoveAll(newest_ + "/plan.json").ok());
  EXPECT_EQ(RunUntil(2, /*dp=*/1).plan_changes, Lines{});
}

TEST_F(ResumedPlanTest, APlanOfAnEarlierVersionLacksFields) {
  RunUntil(1, /*dp=*/2);
  const std::string path = newest_ + "/plan.json";
  std::string text = FileBytes(path);
  for (const char* line :
       {" \"data_dtype\": \"f32\",\n", " \"loss_scale\": 1.0,\n",
        "   \"layer_axes\": [],\n"}) {
    const std::string without = absl::StrReplaceAll(text, {{line, ""}});
    EXPECT_NE(without, text) << line;
    text = without;
  }
  ASSERT_TRUE(base::WriteWholeFile(files_, path, text).ok());
  EXPECT_EQ(RunUntil(2, /*dp=*/2).plan_changes, Lines{});
}

TEST_F(ResumedPlanTest, ADamagedPlanIsToldAndStopsNobody) {
  RunUntil(1, /*dp=*/2);
  const std::string path = newest_ + "/plan.json";
  ASSERT_TRUE(base::WriteWholeFile(files_, path, "{}").ok());
  EXPECT_EQ(RunUntil(2, /*dp=*/2).plan_changes,
            (Lines{path + " cannot be used: plan: format is missing"}));
}

TEST_F(ResumedPlanTest, WhereReductionsRunIsChosenAnewAndNotMentioned) {
  constexpr std::int64_t kAuto = -1, kNever = 0, kAlways = 1 << 30;
  const JobInfo never = RunUntil(1, /*dp=*/2, kNever);
  const JobInfo always = RunUntil(2, /*dp=*/2, kAlways);
  EXPECT_NE(never.plan.ranks[0].reduce_inline,
            always.plan.ranks[0].reduce_inline);
  EXPECT_EQ(always.plan.inline_bytes, kAlways);
  EXPECT_EQ(always.plan_changes, Lines{});
  const JobInfo chosen = RunUntil(3, /*dp=*/2, kAuto);
  EXPECT_NE(chosen.plan.inline_bytes, kAlways);
  EXPECT_EQ(chosen.plan_changes, Lines{});
}

}  // namespace
}  // namespace troupe::actors
