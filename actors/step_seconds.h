// How long a training step of a job takes, measured: by a short job of one rank
// with the whole model and a rank's micro-batch, which leaves nothing behind.
//
//   TROUPE_ASSIGN_OR_RETURN(const double seconds, MeasureStepSeconds(spec));
//
// It has the job's own samples, loss, optimizer and kernels, and takes the
// memory of a rank without pipeline stages. Lasts about half a second, or four
// steps.

#ifndef ACTORS_STEP_SECONDS_H_
#define ACTORS_STEP_SECONDS_H_

#include "absl/status/statusor.h"
#include "actors/job_spec.h"

namespace troupe::actors {

// Errors of the job.
absl::StatusOr<double> MeasureStepSeconds(const JobSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_STEP_SECONDS_H_
