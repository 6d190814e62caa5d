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
#include "absl/time/time.h"
#include "actors/job.h"
#include "base/check.h"
#include "tools/bench/report.h"

namespace troupe::bench {
namespace {

// How much longer than its time the first step, or the last one, may take.
constexpr absl::Duration kSlack = absl::Seconds(60);

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Notes when which step was done, from a warm-up after the first one on, until
// there are `seconds` of it.
class Marks : public actors::JobObserver {
 public:
  struct Mark {
    std::int64_t step;
    double seconds;
  };

  explicit Marks(double seconds) : seconds_(seconds) {}

  void OnSteps(absl::Span<const actors::StepReport> steps) override {
    const double now = Now();
    if (begin_ == 0) begin_ = now + seconds_ / 4;
    if (now < begin_) return;
    marks_.push_back({steps.back().step, now});
    if (now > begin_ + seconds_ && !done_.HasBeenNotified()) done_.Notify();
  }
  bool Wait(absl::Duration timeout) {
    return done_.WaitForNotificationWithTimeout(timeout);
  }
  // Once the job has ended; 0: too short.
  double MedianRate() const {
    std::vector<Mark> marks;
    for (const Mark& mark : marks_) {
      if (mark.seconds < begin_ + seconds_) marks.push_back(mark);
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
  const double seconds_;
  absl::Notification done_;
  // The supervisor's thread writes.
  double begin_ = 0;
  std::vector<Mark> marks_;
};

}  // namespace

absl::StatusOr<double> StepsPerSecond(const actors::JobSpec& spec,
                                      double seconds) {
  Marks marks(seconds);
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
  const double rate = marks.MedianRate();
  if (rate > 0) return rate;
  return absl::OutOfRangeError(absl::StrCat(
      seconds, " seconds are too short for a step; give a larger --seconds"));
}

// Peak memory of this program alone: getrusage() counts that of whoever started
// it, too.
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
