// Jobs in real threads: determinism, widths, resuming, stopping, evaluation.

#include "actors/job.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "actors/checkpoint/checkpoint.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/ops/flatten.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

TEST(JobTest, EveryStepIsReportedOnceAndInOrder) {
  const Reports reports = ReportsOf(TinyCnnJob(2, 50));
  ASSERT_EQ(reports.steps.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(reports.steps[i].step, i + 1);
}

TEST(JobTest, OneWithoutAStepSaysWhatItDoes) {
  JobSpec spec = TinyCnnJob(2, /*steps=*/0);
  std::vector<std::string> notes;
  spec.note = [&notes](const std::string& line) { notes.push_back(line); };
  const Reports evaluated = ReportsOf(spec);
  EXPECT_EQ(evaluated.steps.size(), 0u);
  EXPECT_EQ(evaluated.evaluations.size(), 1u);
  spec.checkpoint.dir = FreshFolder("untrained");
  EXPECT_EQ(ReportsOf(spec).checkpoints.size(), 1u);
  spec.test = nullptr;
  spec.checkpoint.dir.clear();
  ReportsOf(spec);
  const std::string begin = "no steps to train: the model is ";
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0], begin + "evaluated as it begins");
  EXPECT_TRUE(absl::StartsWith(notes[1], begin + "evaluated and saved in "));
  EXPECT_EQ(notes[2], begin + "neither evaluated nor saved");
  spec.steps = 1;
  ReportsOf(spec);
  EXPECT_EQ(notes.size(), 3u) << "a step is trained";
}

TEST(JobTest, TwiceTheSameIsBitEqual) {
  const JobSpec spec = TinyCnnJob(2, 30);
  EXPECT_EQ(ReportsOf(spec).losses(), ReportsOf(spec).losses());
}

TEST(JobTest, InlineAndLaunchedReductionsGiveTheSameBits) {
  JobSpec spec = TinyCnnJob(3, 20);
  spec.plan.global_batch_size = 48;
  spec.plan.buckets.first_bucket_bytes = 4 << 10;
  spec.plan.buckets.bucket_bytes = 32 << 10;
  spec.plan.inline_bytes = 0;
  const Reports launched = ReportsOf(spec);
  EXPECT_FALSE(launched.info.plan.ranks[0].reduce_inline);
  EXPECT_GT(launched.info.plan.stages[0].buckets.size(), 2u);
  spec.plan.inline_bytes = 1 << 30;
  const Reports inlined = ReportsOf(spec);
  EXPECT_TRUE(inlined.info.plan.ranks[0].reduce_inline);
  EXPECT_EQ(launched.losses(), inlined.losses());
}

TEST(JobTest, UpdatingWithTheReductionGivesTheSameBits) {
  JobSpec spec = TinyCnnJob(3, 20);
  spec.plan.global_batch_size = 48;
  spec.plan.buckets.first_bucket_bytes = 4 << 10;
  spec.plan.buckets.bucket_bytes = 32 << 10;
  spec.plan.inline_bytes = 1 << 30;
  spec.checkpoint.dir = FreshFolder("fused");
  const Reports fused = ReportsOf(spec);
  EXPECT_TRUE(absl::StrContains(fused.info.plan.ToString(), "RU0"));
  spec.plan.fuse_updates = false;
  spec.checkpoint.dir = FreshFolder("apart");
  const Reports apart = ReportsOf(spec);
  EXPECT_FALSE(absl::StrContains(apart.info.plan.ToString(), "RU0"));
  EXPECT_EQ(fused.losses(), apart.losses());
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(FileBytes(absl::StrCat(fused.checkpoints.back(), "/", file)),
              FileBytes(absl::StrCat(apart.checkpoints.back(), "/", file)))
        << file;
  }
}

// SGD that is not declared elementwise, like an optimizer of a user.
class PlainSgd : public nn::Sgd {
 public:
  using nn::Sgd::Sgd;
  bool IsElementwise() const override { return false; }
};

TEST(JobTest, AnOptimizerThatIsNotElementwiseUpdatesWholeBuckets) {
  JobSpec spec = TinyCnnJob(2, 3);
  spec.plan.inline_bytes = 1 << 30;
  spec.optimizer = [] { return std::make_unique<PlainSgd>(nn::SgdOptions()); };
  const Reports reports = ReportsOf(spec);
  EXPECT_TRUE(absl::StrContains(reports.info.plan.ToString(), "AR0 UP0"));
}

// Records how many buckets have memory for gradients while one is updated.
class CountingSgd : public PlainSgd {
 public:
  explicit CountingSgd(int* held_max)
      : PlainSgd(nn::SgdOptions()), held_max_(held_max) {}
  absl::Status UpdateRange(nn::Kernels& kernels, const nn::Tensor& scalars,
                           nn::ParameterArena& arena,
                           const nn::ArenaRange& range,
                           const nn::Tensor& grads) override {
    std::set<int> held;
    for (const nn::ArenaSlot& slot : arena.slots()) {
      if (slot.parameter->grad.defined()) held.insert(slot.bucket);
    }
    *held_max_ = std::max(*held_max_, static_cast<int>(held.size()));
    return PlainSgd::UpdateRange(kernels, scalars, arena, range, grads);
  }

 private:
  int* const held_max_;
};

TEST(JobTest, GradientsOfOneBucketHaveMemoryAtATime) {
  JobSpec spec = TinyCnnJob(1, 3);
  spec.plan.buckets.first_bucket_bytes = spec.plan.buckets.bucket_bytes = 1;
  int held_max = 0;
  spec.optimizer = [&held_max] {
    return std::make_unique<CountingSgd>(&held_max);
  };
  const Reports reports = ReportsOf(spec);
  EXPECT_EQ(reports.info.plan.stages[0].buckets.size(), 10u);
  // The gradients of a layer's weight and bias complete together.
  EXPECT_EQ(held_max, 2);
  // Gradients that accumulate over micro-batches are kept until the last one.
  spec.plan.micro_batch_size = spec.plan.global_batch_size / 2;
  ReportsOf(spec);
  EXPECT_EQ(held_max, 10);
}

TEST(JobTest, BucketSizesDoNotChangeTheBits) {
  JobSpec spec = TinyCnnJob(2, 20);
  spec.plan.inline_bytes = 0;
  const Reports one = ReportsOf(spec);
  EXPECT_EQ(one.info.plan.stages[0].buckets.size(), 1u);
  spec.plan.buckets.first_bucket_bytes = spec.plan.buckets.bucket_bytes = 1;
  const Reports many = ReportsOf(spec);
  EXPECT_EQ(many.info.plan.stages[0].buckets.size(), 10u);
  EXPECT_EQ(one.losses(), many.losses());
}

TEST(JobTest, WidthsAgreeWithinRounding) {
  const std::vector<double> one = ReportsOf(TinyCnnJob(1, 20)).losses();
  for (int dp : {2, 4, 8}) {
    const std::vector<double> wide = ReportsOf(TinyCnnJob(dp, 20)).losses();
    ASSERT_EQ(wide.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_NEAR(wide[i], one[i], 1e-4 * one[i]) << dp << " ranks, step " << i;
    }
  }
}

TEST(JobTest, AccumulationAgreesWithOneLargeBatch) {
  JobSpec spec = TinyCnnJob(2, 20);
  const std::vector<double> whole = ReportsOf(spec).losses();
  spec.plan.micro_batch_size = 4;
  const std::vector<double> accumulated = ReportsOf(spec).losses();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(accumulated[i], whole[i], 1e-4 * whole[i]) << "step " << i;
  }
}

TEST(JobTest, EvaluatesEverySampleOnceAtAnyWidth) {
  for (int dp : {1, 2, 4}) {
    JobSpec spec = TinyCnnJob(dp, 10);
    spec.eval_every = 4;
    const Reports reports = ReportsOf(spec);
    ASSERT_EQ(reports.evaluations.size(), 3u);  // after 4, 8 and 10
    EXPECT_EQ(reports.evaluations[0].step, 4);
    EXPECT_EQ(reports.evaluations[2].step, 10);
    for (const EvaluationReport& evaluation : reports.evaluations) {
      EXPECT_EQ(evaluation.count, 70);
    }
  }
}

// The job has more collectives in flight than a group holds by default.
TEST(JobTest, HundredsOfBuckets) {
  JobSpec spec = TinyCnnJob(2, 3);
  spec.model = [] {
    std::vector<std::int64_t> widths(150, 4);
    widths.front() = 28 * 28;
    widths.back() = 10;
    return nn::MakeMlp(widths, {});
  };
  spec.plan.inline_bytes = 0;
  spec.plan.buckets.first_bucket_bytes = spec.plan.buckets.bucket_bytes = 1;
  const Reports reports = ReportsOf(spec);
  EXPECT_EQ(reports.info.plan.stages[0].buckets.size(), 298u);
  EXPECT_EQ(reports.steps.size(), 3u);
}

// A frozen layer, a trained one, and a parameter that no op reads.
class PartlyTrained : public nn::Module {
 public:
  PartlyTrained()
      : frozen_(Add<nn::Linear>("frozen", 28 * 28, 12)),
        trained_(Add<nn::Linear>("trained", 12, 10)),
        idle_(Declare("idle", {3}, nn::Initializer::Uniform(1))) {
    for (nn::Parameter* parameter : frozen_.Parameters()) {
      parameter->requires_grad = false;
    }
  }
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    ctx.Use(idle_);
    return trained_(ctx, frozen_(ctx, nn::ops::Flatten(ctx, x)));
  }

 private:
  nn::Linear& frozen_;
  nn::Linear& trained_;
  nn::Parameter& idle_;
};

TEST(JobTest, FrozenParametersStayAndIdleOnesHoldNothingUp) {
  for (const std::int64_t inline_bytes : {0, 1 << 30}) {
    JobSpec spec = TinyCnnJob(2, 1);
    spec.model = [] { return std::make_unique<PartlyTrained>(); };
    spec.optimizer = [] {
      nn::SgdOptions sgd;
      sgd.momentum = 0.9;
      sgd.weight_decay = 0.1;
      return std::make_unique<nn::Sgd>(sgd);
    };
    spec.plan.inline_bytes = inline_bytes;
    spec.plan.buckets.first_bucket_bytes = spec.plan.buckets.bucket_bytes = 1;
    spec.checkpoint.every = 1;
    spec.checkpoint.dir = FreshFolder(absl::StrCat("frozen", inline_bytes));
    spec.steps = 3;
    const Reports reports = ReportsOf(spec);
    const auto tensor = [&](int checkpoint, const std::string& name,
                            const nn::Shape& shape) {
      base::PosixFileSystem files;
      nn::CachingAllocator allocator;
      nn::Tensor values = nn::Tensor::Empty(shape, nn::DType::kF32, allocator);
      EXPECT_TRUE((*Checkpoint::Open(files, reports.checkpoints[checkpoint]))
                      .ReadModel(name, values)
                      .ok());
      return values;
    };
    ASSERT_EQ(reports.checkpoints.size(), 3u);
    const nn::Shape frozen = {12, 28 * 28}, trained = {10, 12};
    EXPECT_TRUE(nn::BitEqual(tensor(0, "frozen.weight", frozen),
                             tensor(2, "frozen.weight", frozen)));
    EXPECT_FALSE(nn::BitEqual(tensor(0, "trained.weight", trained),
                              tensor(2, "trained.weight", trained)));
  }
}

TEST(JobTest, AModelWithoutATrainedParameterRuns) {
  JobSpec spec = TinyCnnJob(2, 3);
  spec.model = [model = spec.model] {
    auto frozen = model();
    for (nn::Parameter* parameter : frozen->Parameters()) {
      parameter->requires_grad = false;
    }
    return frozen;
  };
  const Reports reports = ReportsOf(spec);
  EXPECT_EQ(reports.info.plan.stages[0].buckets.size(), 0u);
  EXPECT_EQ(reports.steps.size(), 3u);
}

class ResumeTest : public testing::TestWithParam<std::int64_t> {};

INSTANTIATE_TEST_SUITE_P(LaunchedAndInline, ResumeTest,
                         testing::Values(0, 1 << 30));

TEST_P(ResumeTest, IsBitEqualToGoingOn) {
  JobSpec spec = TinyCnnJob(2, 20);
  spec.plan.inline_bytes = GetParam();
  spec.checkpoint.dir = FreshFolder("straight");
  const Reports straight = ReportsOf(spec);
  spec.checkpoint.dir = FreshFolder("halved");
  spec.steps = 9;
  const Reports first = ReportsOf(spec);
  spec.steps = 20;
  spec.checkpoint.resume = true;
  const Reports second = ReportsOf(spec);
  EXPECT_EQ(second.info.first_step, 9);
  EXPECT_FALSE(second.info.resumed_from.empty());
  std::vector<double> joined = first.losses();
  for (double loss : second.losses()) joined.push_back(loss);
  EXPECT_EQ(joined, straight.losses());
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_EQ(FileBytes(absl::StrCat(straight.checkpoints.back(), "/", file)),
              FileBytes(absl::StrCat(second.checkpoints.back(), "/", file)))
        << file;
  }
}

// There are 256 samples: 12 steps of 32 end in the middle of epoch 2; 2 steps
// of 64 end it, and 4 make an epoch.
TEST(JobTest, EpochsEndWhereTheDataDoWhateverTheBatch) {
  JobSpec spec = TinyCnnJob(2, 12);
  spec.checkpoint.dir = FreshFolder("epochs");
  spec.eval_each_epoch = true;
  const auto steps_of_evaluations = [](const Reports& reports) {
    std::vector<std::int64_t> steps;
    for (const EvaluationReport& each : reports.evaluations) {
      steps.push_back(each.step);
    }
    return steps;
  };
  EXPECT_EQ(steps_of_evaluations(ReportsOf(spec)),
            std::vector<std::int64_t>({8, 12}));
  spec.checkpoint.resume = true;
  spec.plan.global_batch_size = 64;
  spec.steps = 0;
  spec.epochs = 4;
  const Reports second = ReportsOf(spec);
  EXPECT_EQ(second.info.steps, 22);
  EXPECT_EQ(second.steps.back().step, 22);
  EXPECT_EQ(second.info.sampler->BatchAt(0).begin, 128);
  EXPECT_EQ(steps_of_evaluations(second),
            std::vector<std::int64_t>({14, 18, 22}));
}

TEST(JobTest, AJobHasStepsOrEpochs) {
  JobSpec spec = TinyCnnJob(1, 5);
  spec.epochs = 2;
  EXPECT_EQ(RunJob(spec).status().message(),
            "JobSpec.steps and JobSpec.epochs are both set; remove one");
  spec.steps = 0;
  spec.epochs = -1;
  EXPECT_EQ(RunJob(spec).status().message(),
            "JobSpec.epochs = -1: must be at least 0");
}

TEST(JobTest, ResumingAFinishedJobEvaluatesAndEnds) {
  JobSpec spec = TinyCnnJob(2, 5);
  spec.checkpoint.dir = FreshFolder("done");
  ReportsOf(spec);
  spec.checkpoint.resume = true;
  const Reports again = ReportsOf(spec);
  EXPECT_TRUE(again.steps.empty());
  EXPECT_EQ(again.evaluations.size(), 1u);
}

TEST(JobTest, AStopFinishesTheStepSavesAndSaysSo) {
  JobSpec spec = TinyCnnJob(2, 1'000'000);
  spec.checkpoint.dir = FreshFolder("stopped");
  absl::StatusOr<std::unique_ptr<Job>> job = Job::Start(spec, nullptr);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->RequestStop();
  const absl::StatusOr<JobResult> result = (*job)->Wait();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stopped);
  EXPECT_LT(result->steps, 1'000'000);
  EXPECT_TRUE(absl::StrContains(result->checkpoint, spec.checkpoint.dir))
      << result->checkpoint;
}

TEST(JobTest, KeepsTheNewestCheckpoints) {
  JobSpec spec = TinyCnnJob(1, 10);
  spec.checkpoint.dir = FreshFolder("many");
  spec.checkpoint.every = 2;
  spec.checkpoint.keep = 2;
  const Reports reports = ReportsOf(spec);
  EXPECT_EQ(reports.checkpoints.size(), 5u);
  base::PosixFileSystem files;
  const auto left = ListCheckpoints(files, spec.checkpoint.dir);
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_EQ(left->size(), 2u);
  EXPECT_EQ(left->back(), reports.checkpoints.back());
}

TEST(JobTest, SavesByTimeWithTheSameBits) {
  JobSpec spec = TinyCnnJob(2, 20);
  const std::vector<double> losses = ReportsOf(spec).losses();
  spec.checkpoint.dir = FreshFolder("by_time");
  spec.checkpoint.every_time = absl::Nanoseconds(1);  // always due
  const Reports reports = ReportsOf(spec);
  EXPECT_GT(reports.checkpoints.size(), 1u);
  EXPECT_EQ(reports.losses(), losses);
}

// A disk whose first rename waits until training has gone on.
class SlowDisk : public base::PosixFileSystem {
 public:
  absl::Status Rename(const std::string& from, const std::string& to) override {
    went_on.WaitForNotification();
    return base::PosixFileSystem::Rename(from, to);
  }
  absl::Notification went_on;
};

class GoingOn : public Reports {
 public:
  explicit GoingOn(SlowDisk* disk) : disk_(disk) {}
  void OnSteps(absl::Span<const StepReport> reports) override {
    Reports::OnSteps(reports);
    // Steps after the first checkpoint were run, and no checkpoint is complete.
    if (reports.back().step > 5 && !disk_->went_on.HasBeenNotified()) {
      EXPECT_TRUE(checkpoints.empty());
      disk_->went_on.Notify();
    }
  }

 private:
  SlowDisk* const disk_;
};

TEST(JobTest, TrainsOnWhileACheckpointIsWritten) {
  SlowDisk disk;
  JobSpec spec = TinyCnnJob(2, 20);
  spec.checkpoint.dir = FreshFolder("slow");
  spec.checkpoint.every = 5;
  spec.checkpoint.keep = 0;
  spec.checkpoint.files = &disk;
  GoingOn reports(&disk);
  const absl::StatusOr<JobResult> result = RunJob(spec, &reports);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(reports.checkpoints.size(), 4u);
}

TEST(JobTest, AJobThatIsDestroyedEnds) {
  JobSpec spec = TinyCnnJob(2, 1'000'000);
  absl::StatusOr<std::unique_ptr<Job>> job = Job::Start(spec, nullptr);
  ASSERT_TRUE(job.ok()) << job.status();
  job->reset();
}

}  // namespace
}  // namespace troupe::actors
