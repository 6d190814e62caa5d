// Runs a job for a while and says how fast it was, and how much memory it took.
//
//   TROUPE_ASSIGN_OR_RETURN(double rate, StepsPerSecond(spec, /*seconds=*/1));
//   double mib = PeakMemoryMiB();
//
// The time begins after the first step and a warm-up of a quarter of it, and is
// cut into blocks, whose median is the result: another program that takes a
// core for a while spoils some blocks and not the figure. torch_train.py does
// the same.

#ifndef TOOLS_PROFILE_TIMED_RUN_H_
#define TOOLS_PROFILE_TIMED_RUN_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "actors/job_spec.h"

namespace troupe::tools {

inline constexpr int kRateBlocks = 10;

// Called where the time begins and ends, in the thread of the job's observer;
// null: nobody is.
struct TimedPart {
  std::function<void()> begin;
  std::function<void()> end;
};

// The job's status where it fails; kDeadlineExceeded where steps do not come.
absl::StatusOr<double> StepsPerSecond(const actors::JobSpec& spec,
                                      double seconds,
                                      const TimedPart& part = {});

// Largest resident memory of this process so far, and that of now.
double PeakMemoryMiB();
double MemoryMiB();

}  // namespace troupe::tools

#endif  // TOOLS_PROFILE_TIMED_RUN_H_
