// A job reports everything to its observer, in order, from a strand that does
// not hold up steps.

#include "actors/strands/reporter.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "actors/protocol/report_queue.h"
#include "actors/setup/job_setup.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "tests/actors/simulated_system.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

std::vector<StepReport> StepsFrom(std::int64_t first, std::int64_t count) {
  std::vector<StepReport> steps(count);
  for (std::int64_t i = 0; i < count; ++i) steps[i].step = first + i;
  return steps;
}

TEST(ReportQueueTest, ConsecutiveStepsAreOneReportAndOrderStays) {
  ReportQueue queue;
  EXPECT_TRUE(queue.empty());
  queue.AddSteps({});
  EXPECT_TRUE(queue.empty());
  queue.AddSteps(StepsFrom(1, 2));
  queue.AddSteps(StepsFrom(3, 1));
  queue.Add(EvaluationReport{/*step=*/3});
  queue.AddSteps(StepsFrom(4, 1));
  queue.Add(CheckpointReport{4, "path"});
  const std::vector<Report> reports = queue.Take();
  EXPECT_TRUE(queue.empty());
  ASSERT_EQ(reports.size(), 4u);
  EXPECT_EQ(std::get<std::vector<StepReport>>(reports[0]).size(), 3u);
  EXPECT_EQ(std::get<EvaluationReport>(reports[1]).step, 3);
  EXPECT_EQ(std::get<std::vector<StepReport>>(reports[2])[0].step, 4);
  EXPECT_EQ(std::get<CheckpointReport>(reports[3]).path, "path");
}

TEST(ReportQueueTest, IsFullOfStepsUntilTheyAreTaken) {
  ReportQueue queue;
  queue.AddSteps(StepsFrom(1, ReportQueue::kStepsMax - 1));
  EXPECT_FALSE(queue.full());
  queue.AddSteps(StepsFrom(1, 1));
  EXPECT_TRUE(queue.full());
  queue.Take();
  EXPECT_FALSE(queue.full());
}

// An observer that records a line for each call.
class Lines : public JobObserver {
 public:
  void OnSteps(absl::Span<const StepReport> steps) override {
    for (const StepReport& step : steps) {
      if (step.step % 5 == 0) lines.push_back(absl::StrCat("step ", step.step));
    }
  }
  void OnEvaluation(const EvaluationReport& report) override {
    lines.push_back(absl::StrCat("evaluation ", report.step));
  }
  void OnCheckpoint(std::int64_t step, const std::string&) override {
    lines.push_back(absl::StrCat("checkpoint ", step));
  }
  std::vector<std::string> lines;
};

TEST(ReporterTest, EverythingIsThereInOrderWhenWaitReturns) {
  JobSpec spec = TinyCnnJob(2, 20);
  spec.eval_every = 5;
  Lines observer;
  ASSERT_TRUE(RunJob(spec, &observer).ok());
  EXPECT_EQ(absl::StrJoin(observer.lines, ", "),
            "step 5, evaluation 5, step 10, evaluation 10, step 15, "
            "evaluation 15, step 20, evaluation 20");
}

// An observer that blocks in its first call until the job has trained to its
// end and saved, which requires other strands to go on.
class WaitsForTheEnd : public Lines {
 public:
  explicit WaitsForTheEnd(const std::string& folder) : folder_(folder) {}
  void OnSteps(absl::Span<const StepReport> steps) override {
    if (calls_++ == 0) {
      const absl::Time deadline = absl::Now() + absl::Seconds(60);
      base::PosixFileSystem files;
      while (!files.Exists(folder_ + "/step-00000020") &&
             absl::Now() < deadline) {
        std::this_thread::yield();
      }
    }
    Lines::OnSteps(steps);
  }
  int calls_ = 0;

 private:
  const std::string folder_;
};

TEST(ReporterTest, AnObserverThatIsBusyHoldsNoStepUp) {
  JobSpec spec = TinyCnnJob(2, 20);
  spec.test = nullptr;
  spec.checkpoint.dir = FreshFolder("busy");
  WaitsForTheEnd observer(spec.checkpoint.dir);
  ASSERT_TRUE(RunJob(spec, &observer).ok());
  EXPECT_EQ(observer.calls_, 2) << "what came meanwhile is one call";
  EXPECT_EQ(absl::StrJoin(observer.lines, ", "),
            "step 5, step 10, step 15, step 20, checkpoint 20");
}

class ThrowsAtTheEnd : public JobObserver {
 public:
  void OnEvaluation(const EvaluationReport&) override {
    throw std::runtime_error("the screen is full");
  }
};

TEST(ReporterTest, AnObserverThatThrowsAtTheEndIsTheJobsError) {
  ThrowsAtTheEnd observer;
  const absl::Status status = RunJob(TinyCnnJob(1, 3), &observer).status();
  EXPECT_EQ(status, absl::InternalError("observer: the screen is full"));
}

// This happens if its supervisor threw and dropped it.
TEST(ReporterTest, OneThatNobodyCanReachAnyMoreSetsTheOutcome) {
  const ProcessContextPtr process =
      SetUpJob(TinyCnnJob(1, 3), /*observer=*/nullptr).value().process;
  SimulatedSystem system;
  ReporterActor reporter =
      SpawnStrand(system.get(), ReporterBehavior, process, SupervisorActor());
  system.RunAll();
  EXPECT_FALSE(process->outcome.HasBeenSet());
  reporter = nullptr;
  EXPECT_TRUE(process->outcome.HasBeenSet());
  EXPECT_EQ(process->outcome.Wait().status().message(),
            "the job ended without a result; one of its actors has thrown");
}

}  // namespace
}  // namespace troupe::actors
