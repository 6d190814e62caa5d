// How long training steps of a job take, measured by running it for a while.
//
//   TROUPE_ASSIGN_OR_RETURN(double rate, StepsPerSecond(spec, /*seconds=*/1));
//   TROUPE_ASSIGN_OR_RETURN(double seconds, MeasureStepSeconds(spec));
//
// The time begins after the first step and a warm-up of a quarter of it, and is
// cut into ten blocks, whose median is the result: another program that takes a
// core for a while spoils some blocks and not the figure.

#ifndef ACTORS_STEP_SECONDS_H_
#define ACTORS_STEP_SECONDS_H_

#include <functional>

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

// A job whose steps are those of `spec`, without end, and that does nothing
// else: it neither evaluates nor saves.
JobSpec StepsAlone(const JobSpec& spec);

// Called where the time begins and ends, in the thread of the job's observer;
// null: nobody is.
struct TimedPart {
  std::function<void()> begin;
  std::function<void()> end;
};

// Runs the job as it is, for so long and at least three steps, and stops it.
//   The job's status where it fails; kDeadlineExceeded where steps do not come.
absl::StatusOr<double> StepsPerSecond(const JobSpec& spec, double seconds,
                                      const TimedPart& part = {});

// Seconds of a step of a job of one rank in this process, with the whole model
// and a rank's micro-batch; it leaves nothing behind. It has the job's own
// samples, loss, optimizer and kernels, and takes the memory of a rank without
// pipeline stages. Lasts a quarter of a second, or three steps.
//   Errors of StepsPerSecond().
absl::StatusOr<double> MeasureStepSeconds(const JobSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_STEP_SECONDS_H_
