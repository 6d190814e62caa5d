// How much of a forward backward finds kept, measured: the memory that tensors
// have taken when a forward of a rank's batch is done, tape and loss included.
//
//   TROUPE_ASSIGN_OR_RETURN(double mib, SavedActivationMiB(spec));
//
// The batch itself, parameters, buffers and what kernels keep from call to call
// do not count. Nothing runs but two forwards, of which the second counts,
// without actors, on the kernels of the job.

#ifndef TOOLS_BENCH_NN_SAVED_ACTIVATIONS_H_
#define TOOLS_BENCH_NN_SAVED_ACTIVATIONS_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::bench {

// Errors of the job's model, data and kernels.
absl::StatusOr<double> SavedActivationMiB(const actors::JobSpec& spec);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_NN_SAVED_ACTIVATIONS_H_
