// Measures how long training steps of a job take, by running it for a while.
//
//   TROUPE_ASSIGN_OR_RETURN(double rate, StepsPerSecond(spec, /*seconds=*/1));
//   TROUPE_ASSIGN_OR_RETURN(double seconds, MeasureStepSeconds(spec));
//
// The measured time begins after the first step and a warm-up of a quarter of
// that time. It is cut into ten blocks, whose median is the result: another
// program that takes a core for a while spoils some blocks, but not the median.

#ifndef ACTORS_STEP_SECONDS_H_
#define ACTORS_STEP_SECONDS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

// Returns a job with the steps of `spec`, but without an end, evaluations and
// checkpoints.
JobSpec StepsAlone(const JobSpec& spec);

// Functions that are called when the measured time begins and ends, in the
// thread of the job's observer. Either may be null.
struct TimedPart {
  std::function<void()> begin;
  std::function<void()> end;
};

// Runs the job, unchanged, for `seconds` and at least three steps, and stops
// it. Returns its steps per second.
//   the job's status: it failed.
//   kDeadlineExceeded: it made too few steps within 2 * seconds + 60.
absl::StatusOr<double> StepsPerSecond(const JobSpec& spec, double seconds,
                                      const TimedPart& part = {});

// Returns the seconds of a step with one rank in this process, the whole model
// and a rank's micro-batch. The rank has the job's samples, loss, optimizer and
// kernels, and takes the memory of a rank without pipeline stages; nothing of
// it remains. Takes a quarter of a second, or three steps.
//   Errors of StepsPerSecond().
absl::StatusOr<double> MeasureStepSeconds(const JobSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_STEP_SECONDS_H_
