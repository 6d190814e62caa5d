// Reads the times of steps from the timeline of a run of the trainer
// (trace.file, with trace.first_step 1, so that it begins with the first step).
//
//   absl::StatusOr<StepTimes> times = ReadStepTimes("run.json", /*skip=*/2);
//   times->step_ms;

#ifndef TOOLS_BENCH_OVERLAP_STEP_TIMES_H_
#define TOOLS_BENCH_OVERLAP_STEP_TIMES_H_

#include <string>

#include "absl/status/statusor.h"

namespace troupe::bench {

// Times of rank 0. Medians are over the steps after the first `skip`.
struct StepTimes {
  // Median time from the begin of a step's first forward to that of the next.
  double step_ms = 0;
  // Median time from there until the first bucket is ready to be reduced.
  double to_first_bucket_ms = 0;
  // Time of the first step, from its begin on the last rank to begin it (as
  // processes start at different times) to the last update.
  double first_step_ms = 0;
};

//   kNotFound: there is no such file.
//   kOutOfRange: it has too few steps.
absl::StatusOr<StepTimes> ReadStepTimes(const std::string& path, int skip);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_OVERLAP_STEP_TIMES_H_
