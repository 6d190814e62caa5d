// Whatever fails, anywhere, ends the job with one Status that names rank, actor
// and cause: in real threads, and under many seeds of the simulator.

#include <atomic>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "actors/job.h"
#include "actors/sim/simulation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/models/models.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

namespace troupe::actors {
namespace {

using testing::HasSubstr;

// Ten times the promise of one second, on a loaded machine.
constexpr absl::Duration kDeadline = absl::Seconds(10);

// Fails at the `fail_at`-th gather of any loader.
class FailingDataset : public data::Dataset {
 public:
  enum class How { kThrow, kStatus, kNan, kIgnored };

  FailingDataset(data::DatasetPtr good, int fail_at, How how)
      : data::Dataset(good->size(), good->spec()),
        good_(std::move(good)),
        fail_at_(fail_at),
        how_(how) {}

  bool failed() const { return failed_; }

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    const absl::Status status = good_->Fill(indices, epoch, inputs, targets);
    if (calls_++ != fail_at_) return status;
    failed_ = true;
    switch (how_) {
      case How::kThrow:
        throw std::runtime_error("the disk made a strange noise");
      case How::kStatus:
        return absl::DataLossError("images.idx: offset 16: truncated");
      case How::kNan:
        inputs.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
        return absl::OkStatus();
      case How::kIgnored:
        for (std::int64_t i = 0; i < targets.numel(); ++i) {
          targets.data<std::int64_t>()[i] = nn::ops::kIgnoreIndex;
        }
        return absl::OkStatus();
    }
    return status;
  }

  data::DatasetPtr good_;
  const int fail_at_;
  const How how_;
  mutable std::atomic<int> calls_{0};
  mutable std::atomic<bool> failed_{false};
};

struct Failing {
  JobSpec spec;
  std::shared_ptr<FailingDataset> dataset;
};

Failing FailingJob(FailingDataset::How how, int fail_at) {
  Failing failing;
  failing.spec = TinyCnnJob(2, 1'000'000);
  failing.dataset =
      std::make_shared<FailingDataset>(failing.spec.train, fail_at, how);
  failing.spec.train = failing.dataset;
  return failing;
}

// Runs a job that must fail, and within the deadline.
absl::Status RunBadly(const JobSpec& spec) {
  const absl::Time start = absl::Now();
  const absl::Status status = RunJob(spec).status();
  EXPECT_LT(absl::Now() - start, kDeadline);
  EXPECT_FALSE(status.ok());
  return status;
}

TEST(FailureTest, ALoaderThatThrows) {
  const Failing job = FailingJob(FailingDataset::How::kThrow, 7);
  const absl::Status status = RunBadly(job.spec);
  EXPECT_TRUE(job.dataset->failed());
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank "));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("loader: the disk made a strange noise"));
}

TEST(FailureTest, ALoaderThatCannotRead) {
  const Failing job = FailingJob(FailingDataset::How::kStatus, 7);
  const absl::Status status = RunBadly(job.spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("loader: images.idx: offset 16: truncated"));
}

// Hangs in its first gather until released, as a dead network disk does.
class HangingDataset : public data::Dataset {
 public:
  explicit HangingDataset(const data::Dataset& like)
      : data::Dataset(like.size(), like.spec()) {}
  mutable absl::Notification released;

 private:
  absl::Status Gather(absl::Span<const std::int64_t>, std::int64_t,
                      const nn::Tensor&, const nn::Tensor&) const override {
    released.WaitForNotification();
    return absl::CancelledError("released");
  }
};

TEST(FailureTest, AStrandThatHangsDoesNotHoldTheOutcomeUp) {
  JobSpec spec = TinyCnnJob(2, 10);
  auto dataset = std::make_shared<HangingDataset>(*spec.train);
  spec.train = dataset;
  spec.timeout = absl::Milliseconds(200);
  const auto job = Job::Start(spec, nullptr);
  ASSERT_TRUE(job.ok()) << job.status();
  const absl::StatusOr<JobResult> result = (*job)->Wait();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded)
      << result.status();
  dataset->released.Notify();  // the job's destructor waits for its threads
}

// One rank's targets may all be ignored, not those of a whole step.
TEST(FailureTest, AStepOfWhichNoTargetCounts) {
  const Failing one_rank = FailingJob(FailingDataset::How::kIgnored, 0);
  JobSpec short_job = one_rank.spec;
  short_job.steps = 3;
  EXPECT_TRUE(RunJob(short_job).ok());
  EXPECT_TRUE(one_rank.dataset->failed());
  Failing all = FailingJob(FailingDataset::How::kIgnored, 7);
  all.spec.plan.mesh = pipeline::Mesh(/*dp=*/1);
  EXPECT_THAT(std::string(RunBadly(all.spec).message()),
              testing::StartsWith("rank 0, compute: the loss of step 8 is nan: "
                                  "no target of its global batch counts"));
}

TEST(FailureTest, ALossThatIsNanNamesRankAndStep) {
  Failing job = FailingJob(FailingDataset::How::kNan, 7);
  const absl::Status status = RunBadly(job.spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex(
                  "rank [01], compute: the loss of step [0-9]+, micro-batch "
                  "0 is nan; .*set JobSpec.stop_on_nan = false.*"));
}

TEST(FailureTest, ANanIsNoFailureWhereItIsAllowed) {
  Failing job = FailingJob(FailingDataset::How::kNan, 7);
  job.spec.stop_on_nan = false;
  job.spec.steps = 20;
  EXPECT_TRUE(RunJob(job.spec).ok());
}

class ThrowingObserver : public JobObserver {
 public:
  void OnSteps(absl::Span<const StepReport>) override {
    throw std::runtime_error("the screen is full");
  }
};

TEST(FailureTest, AnObserverThatThrows) {
  ThrowingObserver observer;
  const absl::Status status =
      RunJob(TinyCnnJob(2, 1'000'000), &observer).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("observer: the screen is full"));
}

// Throws in the n-th forward of one rank's model.
class ThrowingModule : public nn::Module {
 public:
  explicit ThrowingModule(int after)
      : inner_(AddChild("inner", *nn::MakeLeNet({28, 28, 1}, 10, {}))),
        left_(after) {}
  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    if (!ctx.shape_only() && left_-- == 0) {
      throw std::runtime_error("a module of the user's threw");
    }
    return inner_(ctx, x);
  }

 private:
  nn::Module& inner_;
  int left_;
};

TEST(FailureTest, AModelThatThrowsEndsAllRanks) {
  JobSpec spec = TinyCnnJob(3, 1'000'000);
  spec.plan.global_batch_size = 48;
  auto made = std::make_shared<std::atomic<int>>(0);
  // One of the models throws: the others wait in a collective for its rank.
  spec.model = [made] {
    return std::make_unique<ThrowingModule>(made->fetch_add(1) == 2 ? 5
                                                                    : 1 << 30);
  };
  const absl::Status status = RunBadly(spec);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("compute: step 6, micro-batch 0: a module of the "
                        "user's threw"));
}

// Throws at the so many-th update of all that share the count.
class ThrowingSgd : public nn::Sgd {
 public:
  explicit ThrowingSgd(std::shared_ptr<std::atomic<int>> left)
      : nn::Sgd(nn::SgdOptions()), left_(std::move(left)) {}
  absl::Status UpdateRange(nn::Kernels& kernels, const nn::Tensor& scalars,
                           nn::ParameterArena& arena,
                           const nn::ArenaRange& range,
                           const nn::Tensor& grads) override {
    if (left_->fetch_sub(1) == 0) {
      throw std::runtime_error("a user's optimizer threw");
    }
    return nn::Sgd::UpdateRange(kernels, scalars, arena, range, grads);
  }

 private:
  const std::shared_ptr<std::atomic<int>> left_;
};

OptimizerFactory ThrowAfter(int updates) {
  auto left = std::make_shared<std::atomic<int>>(updates);
  return [left] { return std::make_unique<ThrowingSgd>(left); };
}

// Also within a collective, where it updates what it has reduced.
TEST(FailureTest, AnOptimizerThatThrowsEndsAllRanks) {
  for (std::int64_t inline_bytes : {0, 1 << 30}) {
    JobSpec spec = TinyCnnJob(3, 1'000'000);
    spec.plan.global_batch_size = 48;
    spec.plan.inline_bytes = inline_bytes;
    spec.optimizer = ThrowAfter(20);
    const absl::Status status = RunBadly(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("compute: a user's optimizer threw"));
  }
}

// A fused update is in flight when its rank fails: nothing of the rank may be
// gone while peers work on it.
TEST(FailureTest, SimulatedRanksFailDuringUpdatesUnderManySeeds) {
  for (std::uint64_t seed : Seeds(200)) {
    JobSpec spec = TinyCnnJob(3, 5);
    spec.kernels = [] {
      nn::CpuKernelOptions cpu;
      cpu.onednn = false;
      return nn::CreateCpuKernels(cpu);
    };
    spec.plan.global_batch_size = 6;
    spec.plan.inline_bytes = 1 << 30;
    spec.plan.buckets.first_bucket_bytes = spec.plan.buckets.bucket_bytes = 1;
    spec.optimizer = ThrowAfter(static_cast<int>(seed % 23));
    SimulationOptions options;
    options.seed = seed;
    Simulation simulation(spec, options);
    const absl::Status status = simulation.Run().status();
    ASSERT_THAT(std::string(status.message()),
                HasSubstr("a user's optimizer threw"))
        << ReplayCommand(seed);
  }
}

TEST(FailureTest, FactoriesThatFailBeforeAnythingStarts) {
  JobSpec spec = TinyCnnJob(2, 10);
  spec.optimizer = [] { return nullptr; };
  EXPECT_EQ(RunBadly(spec), absl::InvalidArgumentError(
                                "JobSpec.optimizer returned null; return an "
                                "optimizer from it"));
  spec.optimizer = []() -> std::unique_ptr<nn::Optimizer> {
    throw std::runtime_error("no optimizer today");
  };
  EXPECT_EQ(RunBadly(spec), absl::InternalError("no optimizer today"));
}

TEST(FailureTest, MoreRanksThanAProcessHolds) {
  JobSpec spec = TinyCnnJob(512, 10);
  spec.plan.global_batch_size = 512;
  EXPECT_EQ(RunBadly(spec).message(),
            "mesh dp=512 pp=1 has 512 ranks, and one process at most 256; "
            "start several processes");
}

// Strands fail while the crew is still being spawned: many times, since it
// takes an unlucky moment.
TEST(FailureTest, AFailureBeforeTheCrewIsComplete) {
  JobSpec spec = TinyCnnJob(4, 10);
  for (int i = 0; i < 200; ++i) {
    // The first one is opened for the plan.
    auto opened = std::make_shared<std::atomic<int>>(0);
    spec.kernels = [opened]() -> absl::StatusOr<std::unique_ptr<nn::Kernels>> {
      if (opened->fetch_add(1) == 0) return nn::CreateCpuKernels({});
      return absl::UnavailableError("the device is on fire");
    };
    const absl::Status status = RunJob(spec).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kUnavailable);
    ASSERT_THAT(std::string(status.message()),
                HasSubstr("compute: the device is on fire"));
  }
}

TEST(FailureTest, ADeviceThatCannotBeOpenedEndsTheStart) {
  JobSpec spec = TinyCnnJob(2, 10);
  spec.kernels = [] {
    return absl::StatusOr<std::unique_ptr<nn::Kernels>>(
        absl::UnavailableError("the device is on fire"));
  };
  EXPECT_EQ(Job::Start(spec, nullptr).status(),
            absl::UnavailableError("the device is on fire"));
}

TEST(FailureTest, TheFirstErrorNamesTheModule) {
  JobSpec spec = TinyCnnJob(2, 10);
  spec.model = [] { return *nn::MakeLeNet({32, 32, 1}, 10, {}); };
  const absl::Status status = RunBadly(spec);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("in module 7: linear"));
}

TEST(FailureTest, AnIncompleteSpecIsNamed) {
  JobSpec spec = TinyCnnJob(2, 10);
  spec.loss = nullptr;
  EXPECT_THAT(std::string(RunBadly(spec).message()),
              HasSubstr("loss is not set"));
}

TEST(FailureTest, ABadSizeIsNamedBeforeAnythingStarts) {
  JobSpec spec = TinyCnnJob(2, 10);
  spec.plan.global_batch_size = 1;
  EXPECT_THAT(std::string(RunBadly(spec).message()),
              HasSubstr("PlanOptions.global_batch_size = 1 is less than "
                        "PlanOptions.mesh.dp = 2"));
}

TEST(FailureTest, SimulatedLoadersFailUnderManySeeds) {
  for (std::uint64_t seed : Seeds(200)) {
    Failing job = FailingJob(
        seed % 2 ? FailingDataset::How::kThrow : FailingDataset::How::kStatus,
        static_cast<int>(seed % 9));
    job.spec.kernels = [] {
      nn::CpuKernelOptions cpu;
      cpu.onednn = false;
      return nn::CreateCpuKernels(cpu);
    };
    job.spec.steps = 5;
    job.spec.plan.global_batch_size = 4;
    SimulationOptions options;
    options.seed = seed;
    Simulation simulation(job.spec, options);
    const absl::Status status = simulation.Run().status();
    ASSERT_TRUE(job.dataset->failed()) << ReplayCommand(seed);
    ASSERT_THAT(std::string(status.message()), HasSubstr("loader: "))
        << ReplayCommand(seed);
  }
}

TEST(FailureTest, SilenceMeetsItsDeadlineInVirtualTime) {
  JobSpec spec = TinyCnnJob(2, 3);
  spec.plan.global_batch_size = 4;
  spec.timeout = absl::Hours(24);  // takes no time at all
  SimulationOptions options;
  options.edit_table = [](int rank, pipeline::StepTable& table) {
    // Rank 1 waits for a gradient that nobody sends.
    if (rank == 1) {
      const int b = table.Find(pipeline::ActionKind::kBackward, 0);
      table.actions.push_back({pipeline::ActionKind::kRecvGradient, 0, {}});
      table.actions[b].needs.push_back(
          {pipeline::SignalKind::kDone,
           static_cast<int>(table.actions.size()) - 1});
    }
  };
  Simulation simulation(spec, options);
  const absl::Status status = simulation.Run().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("supervisor: no progress for 24h (rank 0 has done 0, "
                        "rank 1 has done 0"));
}

}  // namespace
}  // namespace troupe::actors
