#include "tools/bench/ddp_step/ddp_run.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "actors/job.h"
#include "nn/tensor/check.h"
#include "tools/bench/report.h"

namespace troupe::bench {
namespace {

constexpr absl::Duration kFirstStepMax = absl::Seconds(60);

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Notes when which step was done.
class Marks : public actors::JobObserver {
 public:
  struct Mark {
    std::int64_t step;
    double seconds;
  };

  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    marks_.push_back({steps.back().step, Now()});
    if (!begun_.HasBeenNotified()) begun_.Notify();
  }
  bool WaitForFirst() {
    return begun_.WaitForNotificationWithTimeout(kFirstStepMax);
  }
  // Of the time [begin, end), once the job has ended; 0: too short.
  double MedianRate(double begin, double end) const {
    std::vector<Mark> marks;
    for (const Mark& mark : marks_) {
      if (mark.seconds >= begin && mark.seconds < end) marks.push_back(mark);
    }
    const std::size_t gaps = marks.empty() ? 0 : marks.size() - 1;
    const std::size_t blocks = std::min<std::size_t>(kRateBlocks, gaps);
    std::vector<double> rates;
    for (std::size_t block = 0; block < blocks; ++block) {
      const Mark& from = marks[gaps * block / blocks];
      const Mark& to = marks[gaps * (block + 1) / blocks];
      rates.push_back(static_cast<double>(to.step - from.step) /
                      (to.seconds - from.seconds));
    }
    return rates.empty() ? 0 : Median(rates);
  }

 private:
  absl::Notification begun_;
  std::vector<Mark> marks_;  // the supervisor's thread writes
};

}  // namespace

absl::StatusOr<double> StepsPerSecond(const actors::JobSpec& spec,
                                      double seconds) {
  Marks marks;
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<actors::Job> job,
                          actors::Job::Start(spec, &marks));
  const bool begun = marks.WaitForFirst();
  absl::SleepFor(absl::Seconds(seconds / 4));
  const double begin = Now();
  absl::SleepFor(absl::Seconds(seconds));
  const double end = Now();
  job->RequestStop();
  TROUPE_RETURN_IF_ERROR(job->Wait().status());
  if (!begun) {
    return absl::DeadlineExceededError(
        absl::StrCat("no step in ", absl::FormatDuration(kFirstStepMax)));
  }
  const double rate = marks.MedianRate(begin, end);
  if (rate > 0) return rate;
  return absl::OutOfRangeError(absl::StrCat(
      seconds, " seconds are too short for a step; give a larger --seconds"));
}

// Of this program alone: getrusage() counts that of whoever started it, too.
double PeakMemoryMiB() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kib;
  }
  return kib / 1024;
}

}  // namespace troupe::bench
