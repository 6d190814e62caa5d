// What the tensors of a job's ranks will hold, estimated before it begins, so
// that someone sees in time what will not fit.
//
//   TROUPE_ASSIGN_OR_RETURN(const ExpectedMemory memory,
//                           ExpectMemory(spec, plan));
//   memory.ToString();
//   // "61 MiB a rank (activations 60 MiB, parameters 174 KiB, ...)"
//
// Parameters, gradients and optimizer states are what arenas will take, but for
// padding. Activations are an estimate from above, as if backward found the
// output of every op kept that does not run again (nn/modules/recompute.h),
// for as many micro-batches as the rank's table has under way at once. Batches,
// and what kernels keep for their own use, are not in it. What it was is in
// StepReport::peak_bytes.

#ifndef ACTORS_EXPECTED_MEMORY_H_
#define ACTORS_EXPECTED_MEMORY_H_

#include <string>

#include "absl/status/statusor.h"
#include "actors/job_spec.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Bytes of the rank that needs most.
struct ExpectedMemory {
  double parameters = 0;  // and buffers
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  int ranks = 1;  // of the job

  double total() const {
    return parameters + gradients + optimizer + activations;
  }
  // The largest part first.
  std::string ToString() const;
};

// Errors of the job's model and optimizer.
absl::StatusOr<ExpectedMemory> ExpectMemory(const JobSpec& spec,
                                            const pipeline::Plan& plan);

}  // namespace troupe::actors

#endif  // ACTORS_EXPECTED_MEMORY_H_
