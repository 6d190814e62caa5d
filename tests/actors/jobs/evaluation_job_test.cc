// Jobs without training samples, which only evaluate.

#include "actors/job.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

TEST(EvaluationJobTest, HasTheBitsOfTheRunsOwn) {
  JobSpec spec = TinyCnnJob(2, 5);
  spec.data = {{"kind", "tiny"}, {"content", "aa"}};
  spec.checkpoint.dir = FreshFolder("trained");
  const Reports trained = ReportsOf(spec);
  ASSERT_EQ(trained.evaluations.size(), 1u);
  spec.train = nullptr;
  spec.steps = 0;
  spec.seed = 17;
  spec.optimizer = {};  // the checkpoint has its states
  spec.data.erase("content");
  spec.eval_each_epoch = true;
  spec.checkpoint = CheckpointOptions();
  spec.checkpoint.from = trained.checkpoints.back();
  for (const int dp : {2, 1}) {
    spec.plan.mesh = pipeline::Mesh(dp);
    const Reports evaluated = ReportsOf(spec);
    EXPECT_TRUE(evaluated.steps.empty());
    EXPECT_FALSE(evaluated.info.sampler.has_value());
    EXPECT_EQ(evaluated.info.first_step, 5);
    ASSERT_EQ(evaluated.evaluations.size(), 1u);
    EXPECT_EQ(evaluated.evaluations[0].step, 5);
    EXPECT_EQ(evaluated.evaluations[0].count, 70);
    EXPECT_EQ(evaluated.evaluations[0].accuracy,
              trained.evaluations[0].accuracy);
    if (dp == 2) {
      EXPECT_EQ(evaluated.evaluations[0].loss, trained.evaluations[0].loss);
    }
  }
  spec.data["kind"] = "other";
  EXPECT_EQ(RunJob(spec).status().message(),
            spec.checkpoint.from +
                ": the data were of kind tiny, this job's are of other; go on "
                "with the same data, or start anew");
  // A model as it begins.
  spec.checkpoint.from.clear();
  EXPECT_EQ(ReportsOf(spec).evaluations.size(), 1u);
}

}  // namespace
}  // namespace troupe::actors
