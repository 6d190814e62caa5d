// Jobs over real processes: children of the test, over TLS on loopback.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "actors/job.h"
#include "base/files/owned_fd.h"
#include "data/dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/tensor/tensor.h"
#include "tests/actors/cluster/cluster_run.h"
#include "tests/actors/skip_models.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

using ::testing::ContainsRegex;

// Stops the process that reads it (SIGSTOP), once, in the middle of the job.
class StoppingDataset : public data::Dataset {
 public:
  explicit StoppingDataset(data::DatasetPtr all)
      : Dataset(all->size(), all->spec()), all_(std::move(all)) {}

 private:
  static constexpr int kFillsBefore = 20;

  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override {
    if (++fills_ == kFillsBefore) ::raise(SIGSTOP);
    return all_->Fill(indices, epoch, inputs, targets);
  }

  const data::DatasetPtr all_;
  mutable std::atomic<int> fills_{0};
};

// A job of two processes with a rank each, of which one stops itself.
JobSpec StoppingJob(std::int64_t steps) {
  JobSpec spec = TinyCnnJob(2, steps);
  spec.plan.inline_bytes = 0;
  return spec;
}

ClusterRun StoppingRun(int stopped, absl::Duration liveness_timeout) {
  ClusterRun run;
  run.ranks = {1, 1};
  run.edit = [=](int process, JobSpec& mine) {
    mine.cluster->liveness_timeout = liveness_timeout;
    if (process != stopped) return;
    mine.train = std::make_shared<StoppingDataset>(mine.train);
  };
  return run;
}

// Writes a byte for each committed step to a pipe.
class StepsToPipe : public JobObserver {
 public:
  StepsToPipe() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    read_.reset(ends[0]);
    write_.reset(ends[1]);
  }
  void OnSteps(absl::Span<const StepReport> steps) override {
    const std::string bytes(steps.size(), '.');
    EXPECT_EQ(::write(write_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  // Returns the number of steps before `quiet` has passed without one, or the
  // job has ended.
  int StepsUntilQuiet(absl::Duration quiet) {
    write_.reset();
    int steps = 0;
    char bytes[256];
    pollfd file = {read_.get(), POLLIN, 0};
    while (::poll(&file, 1, absl::ToInt64Milliseconds(quiet)) > 0) {
      const ssize_t count = ::read(read_.get(), bytes, sizeof(bytes));
      if (count <= 0) break;
      steps += static_cast<int>(count);
    }
    return steps;
  }

 private:
  base::OwnedFd read_, write_;
};

TEST(ProcessJobTest, FourProcessesHaveTheBitsOfOne) {
  JobSpec spec = TinyCnnJob(4, /*steps=*/12);
  spec.plan.global_batch_size = 32;
  spec.plan.inline_bytes = 0;
  spec.checkpoint.dir = FreshFolder("apart");
  ClusterRun run;
  run.ranks = {1, 1, 1, 1};
  run.edit = [](int, JobSpec& mine) {
    mine.cluster->insecure = getenv("INSECURE") != nullptr;
  };
  ChildProcesses children(spec, run);
  for (int i = 0; i < 4; ++i) {
    const absl::Status status = children.Wait(i);
    EXPECT_TRUE(status.ok()) << i << ": " << status;
  }
  const std::string apart = absl::StrCat(spec.checkpoint.dir, "/step-00000012");
  spec.checkpoint.dir = FreshFolder("together");
  const Reports together = ReportsOf(spec);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    EXPECT_TRUE(FileBytes(absl::StrCat(apart, "/", file)) ==
                FileBytes(absl::StrCat(together.checkpoints.back(), "/", file)))
        << file;
  }
}

TEST(ProcessJobTest, SkipConnectionsCrossTwoProcesses) {
  JobSpec spec = TinyCnnJob(1, /*steps=*/4);
  spec.model = ImageUNet();
  spec.plan.mesh = pipeline::Mesh(/*dp=*/1, /*pp=*/2);
  spec.plan.cuts = {7};
  spec.plan.micro_batch_size = 8;
  spec.checkpoint.dir = FreshFolder("apart");
  ClusterRun run;
  run.ranks = {1, 1};
  ChildProcesses children(spec, run);
  for (int i : {0, 1}) {
    const absl::Status status = children.Wait(i);
    EXPECT_TRUE(status.ok()) << i << ": " << status;
  }
  const std::string apart = absl::StrCat(spec.checkpoint.dir, "/step-00000004");
  spec.checkpoint.dir = FreshFolder("together");
  const Reports together = ReportsOf(spec);
  for (const char* shard : {"model-00001-of-00002", "model-00002-of-00002"}) {
    EXPECT_TRUE(FileBytes(absl::StrCat(apart, "/", shard, ".safetensors")) ==
                FileBytes(absl::StrCat(together.checkpoints.back(), "/", shard,
                                       ".safetensors")))
        << shard;
  }
  spec.plan.mesh = pipeline::Mesh();
  spec.plan.cuts.clear();
  spec.checkpoint.dir.clear();
  EXPECT_EQ(ReportsOf(spec).losses(), together.losses());
}

// The promise is the liveness time-out; the test allows ten times as much.
// cluster_sim_test compares the exact time in a simulation.
TEST(ProcessJobTest, AStoppedProcessIsNamedWithinTheLivenessTimeout) {
  constexpr absl::Duration kPromise = absl::Seconds(3);
  for (const int stopped : {0, 1}) {
    ChildProcesses children(StoppingJob(/*steps=*/1'000'000),
                            StoppingRun(stopped, kPromise));
    ASSERT_TRUE(children.WaitStopped(stopped));
    const absl::Time begin = absl::Now();
    const absl::Status status = children.Wait(1 - stopped);
    EXPECT_LT(absl::Now() - begin, 10 * kPromise);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()),
                ContainsRegex(absl::StrCat(
                    "process ", stopped, " \\([^)]*pid ", children.pid(stopped),
                    ", rank ", stopped,
                    "\\) has given no sign of life for .*; continue it ")));
    // It reads what the other process has said of it, and ends, too.
    children.Continue(stopped);
    EXPECT_EQ(children.Wait(stopped).code(), absl::StatusCode::kUnavailable);
  }
}

// The stop is longer than the time between two signs of life, 2.5 s.
TEST(ProcessJobTest, AStopWithinTheLivenessTimeoutChangesNothing) {
  constexpr int kSteps = 100;
  JobSpec spec = StoppingJob(kSteps);
  std::vector<std::string> folders;
  for (const int stopped : {0, 1}) {
    folders.push_back(FreshFolder(absl::StrCat("stopped", stopped)));
    spec.checkpoint.dir = folders.back();
    StepsToPipe pipe;
    ClusterRun run = StoppingRun(stopped, absl::Seconds(10));
    run.observer = [&](int process) { return process == 0 ? &pipe : nullptr; };
    ChildProcesses children(spec, run);
    ASSERT_TRUE(children.WaitStopped(stopped));
    EXPECT_LT(pipe.StepsUntilQuiet(absl::Seconds(3)), kSteps);
    children.Continue(stopped);
    for (const int process : {0, 1}) {
      const absl::Status status = children.Wait(process);
      EXPECT_TRUE(status.ok()) << process << ": " << status;
    }
  }
  spec.checkpoint.dir = FreshFolder("together");
  const Reports together = ReportsOf(spec);
  for (const std::string& folder : folders) {
    EXPECT_TRUE(
        FileBytes(absl::StrCat(folder, "/step-00000100/model.safetensors")) ==
        FileBytes(
            absl::StrCat(together.checkpoints.back(), "/model.safetensors")))
        << folder;
  }
}

}  // namespace
}  // namespace troupe::actors
