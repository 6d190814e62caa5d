#include "actors/supervision/milestones.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/actors/supervision/twenty_steps.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

// Returns the milestones of twenty steps.
Milestones Make(JobSpec spec, bool test, std::int64_t first_step = 0) {
  if (test) spec.test = TinyCnnJob(1, 1).test;
  return Milestones(std::make_shared<const JobSpec>(std::move(spec)),
                    TwentySteps(first_step));
}

std::vector<std::int64_t> All(const Milestones& milestones,
                              std::int64_t step = 0) {
  std::vector<std::int64_t> steps;
  while (milestones.After(step) > step) {
    steps.push_back(step = milestones.After(step));
  }
  return steps;
}

TEST(MilestonesTest, TheEndIsOne) {
  EXPECT_EQ(All(Make(JobSpec(), false)), std::vector<std::int64_t>({20}));
}

TEST(MilestonesTest, EvaluationsAndCheckpointsByTheirSteps) {
  JobSpec spec;
  spec.eval_every = 8;
  spec.checkpoint.dir = "somewhere";
  spec.checkpoint.every = 6;
  const Milestones milestones = Make(spec, true);
  EXPECT_EQ(All(milestones), std::vector<std::int64_t>({6, 8, 12, 16, 18, 20}));
  EXPECT_TRUE(milestones.EvaluationAt(16));
  EXPECT_FALSE(milestones.EvaluationAt(12));
  EXPECT_TRUE(milestones.CheckpointAt(12));
  EXPECT_FALSE(milestones.CheckpointAt(16));
  EXPECT_EQ(All(Make(spec, false)), std::vector<std::int64_t>({6, 12, 18, 20}))
      << "nothing to evaluate";
}

TEST(MilestonesTest, EpochsEndWhereTheDataDo) {
  JobSpec spec;
  spec.eval_each_epoch = true;
  const Milestones milestones = Make(spec, true);
  EXPECT_EQ(All(milestones), std::vector<std::int64_t>({8, 16, 20}));
  EXPECT_TRUE(milestones.EvaluationAt(8));
  EXPECT_FALSE(milestones.EvaluationAt(9));
}

TEST(MilestonesTest, AResumedRunDoesNotEvaluateWhereItBegins) {
  JobSpec spec;
  spec.eval_every = 4;
  EXPECT_FALSE(Make(spec, true, /*first_step=*/8).EvaluationAt(8));
  EXPECT_TRUE(Make(spec, true, /*first_step=*/8).EvaluationAt(12));
}

}  // namespace
}  // namespace troupe::actors
