#include "actors/planning/pipeline_choice.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipeline/schedules/schedules.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using Cuts = std::vector<pipeline::Cut>;

// Returns a job of LeNet in two stages, cut at `measured`.
JobSpec OpenJob(const std::string& measured, int* measurements = nullptr) {
  JobSpec job = TinyCnnJob(/*dp=*/1, /*steps=*/4);
  job.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  job.plan.micro_batch_size = job.plan.global_batch_size / 4;
  job.plan.cuts = {3};
  OpenPipeline& open = job.open_pipeline.emplace();
  open.measure = [=](const JobSpec& spec) {
    EXPECT_FALSE(spec.open_pipeline.has_value());
    if (measurements != nullptr) ++*measurements;
    pipeline::ModelCosts costs;
    costs.units.emplace_back().path = measured;
    return costs;
  };
  open.set = [](const pipeline::ModelCosts& costs,
                pipeline::PlanOptions& plan) {
    plan.cuts = {costs.units[0].path};
    return absl::OkStatus();
  };
  return job;
}

TEST(PipelineChoice, CutsAreThoseOfTheMeasurement) {
  std::string note;
  JobSpec open = OpenJob("6");
  open.note = [&](const std::string& line) { note = line; };
  const auto closed = WithPipeline(open, /*plan=*/nullptr);
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_FALSE(closed->open_pipeline.has_value());
  EXPECT_EQ(closed->plan.cuts, (Cuts{"6"}));
  EXPECT_EQ(note,
            "the parts of the model are measured; its stages begin at \"6\"");
}

TEST(PipelineChoice, ErrorsOfWhatMeasuresAndSets) {
  JobSpec open = OpenJob("6");
  open.open_pipeline->measure = [](const JobSpec&) {
    return absl::UnavailableError("no clock");
  };
  EXPECT_EQ(WithPipeline(open, nullptr).status(),
            absl::UnavailableError("no clock"));
  open.open_pipeline->measure = nullptr;
  EXPECT_EQ(WithPipeline(open, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// A resumed run keeps its cuts, whatever a new measurement would find.
TEST(PipelineChoice, AJobThatGoesOnKeepsItsCuts) {
  const std::string folder = FreshFolder("pipeline_choice");
  JobSpec first = OpenJob("6");
  first.steps = 2;
  first.checkpoint.dir = folder;
  EXPECT_EQ(ReportsOf(first).info.plan.cuts, (std::vector<std::string>{"6"}));
  int measurements = 0;
  JobSpec second = OpenJob("5", &measurements);
  second.checkpoint.dir = folder;
  second.checkpoint.resume = true;
  const Reports resumed = ReportsOf(second);
  EXPECT_EQ(resumed.info.plan.cuts, (std::vector<std::string>{"6"}));
  EXPECT_EQ(measurements, 0);
  EXPECT_TRUE(resumed.info.plan_changes.empty());
  // Under another mesh it measures anew.
  JobSpec third = OpenJob("5", &measurements);
  third.checkpoint = second.checkpoint;
  third.steps = 5;
  third.plan.virtual_stages = 1;
  third.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/3);
  third.plan.cuts = {"3", "6"};
  third.open_pipeline->set = [](const pipeline::ModelCosts& costs,
                                pipeline::PlanOptions& plan) {
    plan.cuts = {"2", costs.units[0].path};
    return absl::OkStatus();
  };
  EXPECT_EQ(ReportsOf(third).info.plan.cuts,
            (std::vector<std::string>{"2", "5"}));
  EXPECT_EQ(measurements, 1);
}

// A run that chose its schedule, too, keeps placement and tables.
TEST(PipelineChoice, ASearchedScheduleStays) {
  JobSpec open = OpenJob("6");
  open.open_pipeline->chooses_schedule = true;
  pipeline::PlanOptions earlier = open.plan;
  earlier.cuts = {"2", "4", "6"};
  ASSERT_TRUE(pipeline::SetSchedule("zb_v", earlier).ok());
  const auto plan = MakeJobPlan(open, earlier);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto closed = WithPipeline(open, &*plan);
  ASSERT_TRUE(closed.ok()) << closed.status();
  EXPECT_EQ(closed->plan.placement, pipeline::VPlacement(2));
  const auto again = MakeJobPlan(open, closed->plan);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->cuts, plan->cuts);
  for (int pp = 0; pp < 2; ++pp) {
    EXPECT_EQ(again->ranks[pp].train, plan->ranks[pp].train);
  }
}

}  // namespace
}  // namespace troupe::actors
