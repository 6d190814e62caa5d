// Measures the activation memory that a forward saves for backward: the memory
// of tensors after a forward of a rank's batch, including tape and loss.
//
//   TROUPE_ASSIGN_OR_RETURN(double mib, SavedActivationMiB(spec));
//
// The batch itself, parameters, buffers and memory that kernels keep between
// calls do not count. Runs two forwards without actors, on the kernels of the
// job, and measures the second.

#ifndef TOOLS_BENCH_NN_SAVED_ACTIVATIONS_H_
#define TOOLS_BENCH_NN_SAVED_ACTIVATIONS_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::bench {

// Errors: those of the job's model, data and kernels.
absl::StatusOr<double> SavedActivationMiB(const actors::JobSpec& spec);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_NN_SAVED_ACTIVATIONS_H_
