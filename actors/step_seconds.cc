#include "actors/step_seconds.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "actors/job.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t kStepsWithoutEnd = std::int64_t{1} << 40;
constexpr std::size_t kRateBlocks = 10;
constexpr double kMeasuredSeconds = 0.2;
// Limit on the time beyond twice the measured one, for slow first steps.
constexpr absl::Duration kSlack = absl::Seconds(60);
// Least number of marks: a rate needs a step between two of them.
constexpr std::size_t kMarksMin = 2;

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void CallIfSet(const std::function<void()>& function) {
  if (function) function();
}

// Records the times at which steps were reported, after the first one and a
// warm-up, for `seconds`, or longer if a step takes longer.
class Marks : public JobObserver {
 public:
  struct Mark {
    std::int64_t step;
    double seconds;
  };

  Marks(double seconds, const TimedPart& part)
      : seconds_(seconds), part_(part) {}

  void OnSteps(absl::Span<const StepReport> steps) override {
    const double now = Now();
    if (begin_ == 0) begin_ = now + seconds_ / 4;
    if (now < begin_ || done_.HasBeenNotified()) return;
    if (marks_.empty()) CallIfSet(part_.begin);
    marks_.push_back({steps.back().step, now});
    if (now < begin_ + seconds_ || marks_.size() < kMarksMin) return;
    CallIfSet(part_.end);
    done_.Notify();
  }
  bool Wait(absl::Duration timeout) {
    return done_.WaitForNotificationWithTimeout(timeout);
  }
  // Returns steps per second. To be called after Wait() has returned true and
  // the job has ended.
  double MedianRate() const {
    const std::size_t gaps = marks_.size() - 1;
    const std::size_t blocks = std::min<std::size_t>(kRateBlocks, gaps);
    std::vector<double> rates;
    for (std::size_t block = 0; block < blocks; ++block) {
      const Mark& from = marks_[gaps * block / blocks];
      const Mark& to = marks_[gaps * (block + 1) / blocks];
      rates.push_back(static_cast<double>(to.step - from.step) /
                      (to.seconds - from.seconds));
    }
    const auto middle = rates.begin() + rates.size() / 2;
    std::nth_element(rates.begin(), middle, rates.end());
    return *middle;
  }

 private:
  const double seconds_;
  const TimedPart& part_;
  absl::Notification done_;
  // Written in the observer's thread alone.
  double begin_ = 0;
  std::vector<Mark> marks_;
};

// Returns a job of one rank with the whole model and a rank's micro-batch.
JobSpec OnOneRank(JobSpec job) {
  job.cluster.reset();
  job.init = InitOptions();
  job.note = nullptr;
  job.trace = nullptr;
  job.stop_on_nan = false;
  pipeline::PlanOptions& plan = job.plan;
  plan.global_batch_size = plan.MicroBatchSize();
  plan.micro_batch_size = 0;
  plan.mesh = pipeline::Mesh();
  plan.cuts.clear();
  plan.virtual_stages = 1;
  plan.placement = pipeline::Placement();
  job.open_mesh.reset();
  job.open_pipeline.reset();
  plan.schedule = nullptr;
  return job;
}

}  // namespace

JobSpec StepsAlone(const JobSpec& spec) {
  JobSpec job = spec;
  job.train = SamplesOf(spec);
  job.test = nullptr;
  job.epochs = 0;
  job.steps = kStepsWithoutEnd;
  job.eval_every = 0;
  job.eval_each_epoch = false;
  job.early_stop_patience = 0;
  job.checkpoint = CheckpointOptions();
  return job;
}

absl::StatusOr<double> StepsPerSecond(const JobSpec& spec, double seconds,
                                      const TimedPart& part) {
  Marks marks(seconds, part);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Job> job, Job::Start(spec, &marks));
  const absl::Duration timeout = kSlack + 2 * absl::Seconds(seconds);
  const bool done = marks.Wait(timeout);
  job->RequestStop();
  TROUPE_RETURN_IF_ERROR(job->Wait().status());
  if (!done) {
    return absl::DeadlineExceededError(
        absl::StrCat("not enough steps to measure their time in ",
                     absl::FormatDuration(timeout), "; use a smaller batch"));
  }
  return marks.MedianRate();
}

absl::StatusOr<double> MeasureStepSeconds(const JobSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(
      const double rate,
      StepsPerSecond(OnOneRank(StepsAlone(spec)), kMeasuredSeconds));
  return 1 / rate;
}

}  // namespace troupe::actors
