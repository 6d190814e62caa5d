#include "tools/profile/timed_run.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "actors/job.h"
#include "base/check.h"

namespace troupe::tools {
namespace {

// How much longer than its time the first step, or the last one, may take.
constexpr absl::Duration kSlack = absl::Seconds(60);
// A step lies between two.
constexpr std::size_t kMarksMin = 2;

// Memory of this program alone: getrusage() counts that of whoever started it,
// too.
double StatusMiB(const char* field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0;
  while (status >> word) {
    if (word == field) status >> kib;
  }
  return kib / 1024;
}

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void CallIfSet(const std::function<void()>& function) {
  if (function) function();
}

// Notes when which step was done, from a warm-up after the first one on, for
// `seconds`, or longer where a step takes so long.
class Marks : public actors::JobObserver {
 public:
  struct Mark {
    std::int64_t step;
    double seconds;
  };

  Marks(double seconds, const TimedPart& part)
      : seconds_(seconds), part_(part) {}

  void OnSteps(absl::Span<const actors::StepReport> steps) override {
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
  // Once the job has ended, and Wait() has returned true.
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
  // The supervisor's thread writes.
  double begin_ = 0;
  std::vector<Mark> marks_;
};

}  // namespace

absl::StatusOr<double> StepsPerSecond(const actors::JobSpec& spec,
                                      double seconds, const TimedPart& part) {
  Marks marks(seconds, part);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<actors::Job> job,
                          actors::Job::Start(spec, &marks));
  const absl::Duration timeout = kSlack + 2 * absl::Seconds(seconds);
  const bool done = marks.Wait(timeout);
  job->RequestStop();
  TROUPE_RETURN_IF_ERROR(job->Wait().status());
  if (!done) {
    return absl::DeadlineExceededError(
        absl::StrCat("not enough steps in ", absl::FormatDuration(timeout)));
  }
  return marks.MedianRate();
}

double PeakMemoryMiB() { return StatusMiB("VmHWM:"); }
double MemoryMiB() { return StatusMiB("VmRSS:"); }

}  // namespace troupe::tools
