#include "actors/spec/job_spec.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/field_error.h"
#include "gtest/gtest.h"
#include "nn/modules/module.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

TEST(JobSpecTest, AJobIsSound) {
  EXPECT_TRUE(CheckNumbers(TinyCnnJob(2, 10)).ok());
}

TEST(JobSpecTest, AJobWithoutTrainingSamplesOnlyEvaluates) {
  JobSpec spec = TinyCnnJob(1, /*steps=*/0);
  EXPECT_EQ(SamplesOf(spec), spec.train);
  spec.train = nullptr;
  EXPECT_EQ(SamplesOf(spec), spec.test);
  EXPECT_TRUE(CheckSamples(spec).ok());
  spec.steps = 3;
  EXPECT_EQ(CheckSamples(spec).message(),
            "JobSpec.steps is set, but JobSpec.train is not, so that nothing "
            "is trained; set both, or leave both out to evaluate JobSpec.test "
            "alone");
  spec.steps = 0;
  spec.epochs = 1;
  EXPECT_EQ(base::FieldsOf(CheckSamples(spec))[0], "JobSpec.epochs");
  spec.epochs = 0;
  spec.checkpoint.dir = "saved";
  EXPECT_EQ(base::FieldsOf(CheckSamples(spec))[0], "CheckpointOptions.dir");
  spec.test = nullptr;
  EXPECT_EQ(CheckSamples(spec).message(),
            "JobSpec.train is not set; set it, or JobSpec.test alone to "
            "evaluate a model");
}

TEST(JobSpecTest, BadFieldsAreNamed) {
  const std::pair<std::function<void(JobSpec&)>, const char*> cases[] = {
      {[](JobSpec& s) { s.steps = -1; },
       "JobSpec.steps = -1: must be at least 0"},
      {[](JobSpec& s) { s.epochs = -2; },
       "JobSpec.epochs = -2: must be at least 0"},
      {[](JobSpec& s) { s.epochs = 2; },
       "JobSpec.steps and JobSpec.epochs are both set; remove one"},
      {[](JobSpec& s) { s.eval_every = -1; },
       "JobSpec.eval_every = -1: must be at least 0"},
      {[](JobSpec& s) { s.prefetch_steps = -1; },
       "JobSpec.prefetch_steps = -1: must be at least 0"},
      {[](JobSpec& s) { s.checkpoint.every = -1; },
       "CheckpointOptions.every = -1: must be at least 0"},
      {[](JobSpec& s) { s.checkpoint.every_time = absl::Seconds(-1); },
       "CheckpointOptions.every_time = -1s: must be at least 0"},
      {[](JobSpec& s) { s.checkpoint.keep = -1; },
       "CheckpointOptions.keep = -1: must be at least 0"},
      {[](JobSpec& s) { s.plan.threads_per_rank = 0; },
       "PlanOptions.threads_per_rank = 0: must be at least 1"},
      {[](JobSpec& s) { s.plan.buckets.bucket_bytes = -5; },
       "BucketOptions.bucket_bytes = -5: must be at least 1"},
      {[](JobSpec& s) { s.plan.buckets.first_bucket_bytes = 0; },
       "BucketOptions.first_bucket_bytes = 0: must be at least 1"},
      {[](JobSpec& s) { s.timeout = absl::ZeroDuration(); },
       "JobSpec.timeout = 0: must be above 0; absl::InfiniteDuration() waits "
       "for ever"},
  };
  for (const auto& [spoil, message] : cases) {
    JobSpec spec = TinyCnnJob(2, 10);
    spoil(spec);
    const absl::Status status = CheckNumbers(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_EQ(status.message(), message);
    EXPECT_FALSE(base::FieldsOf(status).empty()) << message;
  }
}

TEST(JobSpecTest, AnInfiniteTimeOutRuns) {
  JobSpec spec = TinyCnnJob(2, 5);
  spec.timeout = absl::InfiniteDuration();
  for (std::int64_t inline_bytes : {0, 1 << 30}) {
    spec.plan.inline_bytes = inline_bytes;
    EXPECT_TRUE(RunJob(spec).ok());
  }
}

TEST(JobSpecTest, OptionsTrainAsTheirOptimizer) {
  const auto losses = [](JobOptimizer optimizer) {
    JobSpec spec = TinyCnnJob(2, 5);
    spec.optimizer = std::move(optimizer);
    return ReportsOf(spec).losses();
  };
  nn::SgdOptions sgd = {/*lr=*/0.02, /*momentum=*/0.9};
  const auto make_sgd = [sgd] { return std::make_unique<nn::Sgd>(sgd); };
  EXPECT_EQ(losses(sgd), losses(make_sgd));
  const auto make_adam = [] {
    return std::make_unique<nn::Adam>(nn::AdamWDefaults());
  };
  EXPECT_EQ(losses(nn::AdamWDefaults()), losses(make_adam));
  EXPECT_NE(losses(nn::AdamWDefaults()), losses(sgd));
  const auto make_lamb = [] {
    return std::make_unique<nn::Lamb>(nn::LambOptions());
  };
  EXPECT_EQ(losses(nn::LambOptions()), losses(make_lamb));
  const auto make_lars = [] {
    return std::make_unique<nn::Lars>(nn::LarsOptions());
  };
  EXPECT_EQ(losses(nn::LarsOptions()), losses(make_lars));
}

TEST(JobSpecTest, BadOptionsAreNamed) {
  JobSpec spec = TinyCnnJob(2, 5);
  spec.optimizer = nn::SgdOptions{/*lr=*/-1};
  const absl::Status status = RunJob(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "SgdOptions.lr = -1: must be at least 0");
  spec.optimizer = nn::SgdOptions{/*lr=*/0.1};
  EXPECT_TRUE(CheckNumbers(spec).ok());
}

TEST(JobSpecTest, FieldsAreFunctionsOrNone) {
  JobSpec spec;
  EXPECT_FALSE(spec.model || spec.optimizer || spec.loss || spec.train);
  spec = TinyCnnJob(2, 5);
  const nn::ModelFactory& model = spec.model;
  EXPECT_NE(model(), nullptr);
  EXPECT_NE(spec.optimizer(), nullptr);
  spec.model = nullptr;
  spec.loss = nullptr;
  spec.optimizer = nullptr;
  spec.train = nullptr;
  EXPECT_FALSE(spec.model || spec.optimizer || spec.loss || spec.train);
}

}  // namespace
}  // namespace troupe::actors
