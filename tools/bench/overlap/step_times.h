// The time of steps, from the timeline that a run of the trainer wrote
// (trace.file, with trace.first_step 1): in microseconds, from the first step
// on.
//
//   absl::StatusOr<StepTimes> times = ReadStepTimes("run.json", /*skip=*/2);
//   times->step_ms;

#ifndef TOOLS_BENCH_OVERLAP_STEP_TIMES_H_
#define TOOLS_BENCH_OVERLAP_STEP_TIMES_H_

#include <string>

#include "absl/status/statusor.h"

namespace troupe::bench {

// Of rank 0. Medians are over the steps behind the first `skip`.
struct StepTimes {
  // Median, from the begin of one step's first forward to that of the next.
  double step_ms = 0;
  // Median, from there to where the first bucket is ready to be reduced.
  double to_first_bucket_ms = 0;
  // The first step, from where the last of the ranks begins with it (processes
  // start when they start) to the last update.
  double first_step_ms = 0;
};

//   kNotFound: there is no such file.
//   kOutOfRange: it has too few steps.
absl::StatusOr<StepTimes> ReadStepTimes(const std::string& path, int skip);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_OVERLAP_STEP_TIMES_H_
