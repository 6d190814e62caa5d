#include "actors/planning/dtype_choice.h"

#include <map>
#include <string>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "actors/job.h"
#include "actors/step_seconds.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Times = std::map<nn::DType, double>;

// Returns TinyCnnJob() with an open dtype. Its measurements are `times`.
JobSpec OpenDTypeJob(const Times& times, std::int64_t steps = 2) {
  JobSpec job = TinyCnnJob(/*dp=*/1, steps);
  OpenDType& open = job.open_dtype.emplace();
  open.set = UseDType;
  open.measure = [times](const JobSpec& spec) -> absl::StatusOr<double> {
    EXPECT_FALSE(spec.open_dtype.has_value());
    return times.at(spec.dtype);
  };
  return job;
}

nn::DType Chosen(const JobSpec& spec) {
  return WithDType(spec, /*plan=*/nullptr).value().dtype;
}

TEST(DTypeChoice, TheFastestIsTakenWhereItIsWorthIt) {
  using nn::DType;
  EXPECT_EQ(Chosen(OpenDTypeJob({{DType::kF32, 2}, {DType::kBF16, 1}})),
            DType::kBF16);
  EXPECT_EQ(Chosen(OpenDTypeJob({{DType::kF32, 1}, {DType::kBF16, 2}})),
            DType::kF32);
  EXPECT_EQ(Chosen(OpenDTypeJob({{DType::kF32, 1}, {DType::kBF16, 0.98}})),
            DType::kF32);
  JobSpec three =
      OpenDTypeJob({{DType::kF32, 3}, {DType::kF16, 1}, {DType::kBF16, 2}});
  three.open_dtype->candidates = {DType::kF32, DType::kF16, DType::kBF16};
  EXPECT_EQ(Chosen(three), DType::kF16);
  three.open_dtype->measure = nullptr;
  EXPECT_EQ(Chosen(three), DType::kF32);
}

TEST(DTypeChoice, IsTold) {
  JobSpec job =
      OpenDTypeJob({{nn::DType::kF32, 0.002}, {nn::DType::kBF16, 0.001}});
  std::vector<std::string> notes;
  job.note = [&](const std::string& line) { notes.push_back(line); };
  EXPECT_EQ(Chosen(job), nn::DType::kBF16);
  EXPECT_EQ(notes, std::vector<std::string>{"precision bf16: a step of one "
                                            "rank takes f32 2 ms, bf16 1 ms"});
}

TEST(DTypeChoice, WithoutCandidatesThereIsNone) {
  JobSpec job = OpenDTypeJob({});
  job.open_dtype->candidates.clear();
  EXPECT_EQ(WithDType(job, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  job = OpenDTypeJob({});
  job.open_dtype->set = nullptr;
  EXPECT_EQ(RunJob(job).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DTypeChoice, WhatCannotBeMeasuredEndsTheJob) {
  JobSpec job = OpenDTypeJob({});
  job.open_dtype->measure = [](const JobSpec&) -> absl::StatusOr<double> {
    return absl::ResourceExhaustedError("no memory");
  };
  EXPECT_EQ(RunJob(job).status(), absl::ResourceExhaustedError("no memory"));
}

// The times of steps no longer matter.
TEST(DTypeChoice, AResumedJobKeepsThatOfItsCheckpoint) {
  JobSpec job = OpenDTypeJob({{nn::DType::kF32, 2}, {nn::DType::kBF16, 1}});
  job.checkpoint.dir = FreshFolder("dtype_choice");
  const Reports first = ReportsOf(job);
  EXPECT_EQ(first.info.plan.data_dtype, nn::DType::kBF16);
  JobSpec more = OpenDTypeJob({{nn::DType::kF32, 1}, {nn::DType::kBF16, 2}}, 4);
  more.checkpoint.dir = job.checkpoint.dir;
  more.checkpoint.resume = true;
  const Reports second = ReportsOf(more);
  EXPECT_EQ(second.info.plan.data_dtype, nn::DType::kBF16);
  EXPECT_TRUE(second.info.plan_changes.empty());
  EXPECT_EQ(second.info.first_step, 2);
}

// Measures with a real clock: either dtype may win, and the job runs with it.
TEST(DTypeChoice, StepsAreMeasured) {
  JobSpec job = OpenDTypeJob({});
  job.plan.mesh = pipeline::Mesh(/*dp=*/2);
  job.open_dtype->measure = MeasureStepSeconds;
  const Reports reports = ReportsOf(job);
  EXPECT_EQ(reports.steps.size(), 2);
  EXPECT_TRUE(reports.info.plan.data_dtype == nn::DType::kF32 ||
              reports.info.plan.data_dtype == nn::DType::kBF16);
}

TEST(StepSeconds, LeavesNothingBehindAndTellsNobody) {
  JobSpec job = TinyCnnJob(/*dp=*/2, /*steps=*/1);
  job.checkpoint.dir = FreshFolder("step_seconds");
  job.note = [](const std::string& line) { ADD_FAILURE() << line; };
  const absl::StatusOr<double> seconds = MeasureStepSeconds(job);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_GT(*seconds, 0);
  base::PosixFileSystem files;
  EXPECT_TRUE(ListCheckpoints(files, job.checkpoint.dir)->empty());
}

}  // namespace
}  // namespace troupe::actors
