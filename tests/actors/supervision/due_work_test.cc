#include "actors/supervision/due_work.h"

#include <memory>
#include <optional>

#include "gtest/gtest.h"
#include "tests/actors/supervision/twenty_steps.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// Returns the work of a job of 20 steps with a test set, evaluated every 8.
DueWork WorkOf(JobSpec spec, std::int64_t first_step = 0,
               const std::optional<EvaluationState>& saved = std::nullopt) {
  spec.test = TinyCnnJob(1, 1).test;
  spec.eval_every = 8;
  return DueWork(std::make_shared<const JobSpec>(std::move(spec)),
                 TwentySteps(first_step), saved);
}

EvaluationReport ReportAt(std::int64_t step, double loss) {
  EvaluationReport report;
  report.step = step;
  report.loss = loss;
  report.count = 1;
  return report;
}

TEST(DueWorkTest, AnEvaluationIsDueOnce) {
  DueWork due = WorkOf(JobSpec());
  EXPECT_EQ(due.NextBoundary(0), 8);
  EXPECT_FALSE(due.EvaluationAt(0, /*halted=*/false));
  EXPECT_TRUE(due.EvaluationAt(8, false));
  due.Add(ReportAt(8, 1));
  EXPECT_FALSE(due.EvaluationAt(8, false));
  EXPECT_TRUE(due.EvaluationAt(16, false));
}

TEST(DueWorkTest, AStopPostponesAnEvaluationBeforeTheLastStep) {
  const DueWork due = WorkOf(JobSpec());
  EXPECT_TRUE(due.AtEnd(8, /*halted=*/true));
  EXPECT_FALSE(due.EvaluationAt(8, true));
  EXPECT_TRUE(due.EvaluationAt(20, true)) << "all steps are done";
}

TEST(DueWorkTest, APostponedEvaluationIsDueWhenTheRunGoesOn) {
  JobSpec spec;
  spec.checkpoint.keep_best = true;
  const std::optional<EvaluationState> saved = WorkOf(spec).StateAt(8);
  ASSERT_TRUE(saved.has_value());
  EXPECT_TRUE(saved->due);
  EXPECT_TRUE(WorkOf(spec, /*first_step=*/8, saved).EvaluationAt(8, false));
  DueWork evaluated = WorkOf(spec);
  evaluated.Add(ReportAt(8, 1));
  EXPECT_FALSE(evaluated.StateAt(8)->due);
}

TEST(DueWorkTest, CheckpointsAreOfTheirStepsTheBestAndTheEnd) {
  JobSpec spec;
  spec.checkpoint.dir = "somewhere";
  spec.checkpoint.every = 6;
  spec.checkpoint.keep_best = true;
  DueWork due = WorkOf(spec);
  EXPECT_TRUE(due.CheckpointAt(6, /*halted=*/false));
  EXPECT_FALSE(due.CheckpointAt(8, false));
  EXPECT_TRUE(due.CheckpointAt(8, true)) << "a stop ends the job there";
  EXPECT_TRUE(due.CheckpointAt(20, false));
  due.Add(ReportAt(8, 1));
  EXPECT_TRUE(due.CheckpointAt(8, false)) << "the best so far";
  due.Add(ReportAt(16, 2));
  EXPECT_FALSE(due.CheckpointAt(16, false));
  EXPECT_FALSE(WorkOf(JobSpec()).CheckpointAt(20, false)) << "no folder";
}

TEST(DueWorkTest, AnEvaluationOfTheEndAloneDoesNotCountTowardsAnEarlyStop) {
  JobSpec spec;
  spec.early_stop_patience = 1;
  DueWork due = WorkOf(spec);
  due.Add(ReportAt(8, 1));
  due.Add(ReportAt(20, 2));
  EXPECT_FALSE(due.track().HasConverged());
  DueWork planned = WorkOf(spec);
  planned.Add(ReportAt(8, 1));
  planned.Add(ReportAt(16, 2));
  EXPECT_TRUE(planned.AtEnd(16, /*halted=*/false));
}

TEST(DueWorkTest, TheResultSaysWhyAJobEndsBeforeItsLastStep) {
  JobSpec spec;
  spec.early_stop_patience = 1;
  DueWork due = WorkOf(spec);
  JobResult all, stopped, converged;
  due.SetEnd(20, all);
  EXPECT_EQ(all.steps, 20);
  EXPECT_FALSE(all.stopped);
  EXPECT_EQ(all.converged, "");
  due.SetEnd(5, stopped);
  EXPECT_EQ(stopped.steps, 5);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_EQ(stopped.converged, "");
  due.Add(ReportAt(8, 1));
  due.Add(ReportAt(16, 2));
  due.SetEnd(16, converged);
  EXPECT_FALSE(converged.stopped);
  EXPECT_EQ(converged.converged, due.track().ToString());
}

}  // namespace
}  // namespace troupe::actors
