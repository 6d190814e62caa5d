// What the tensors of a job's ranks will hold, estimated before it begins, so
// that someone sees in time what will not fit.
//
//   TROUPE_ASSIGN_OR_RETURN(const ExpectedMemory memory,
//                           ExpectMemory(spec, plan));
//   memory.ToString();
//   // "1.8 MiB a rank (activations 1.3 MiB, parameters 174 KiB, ...)"
//
// Parameters, gradients and optimizer states are what arenas will take, but for
// padding. Activations are an estimate from above, as if backward found the
// output of every op kept that does not run again (nn/modules/recompute.h),
// for as many micro-batches as the rank's table has under way at once. Batches,
// and what kernels keep for their own use, are not in it. What it was is in
// StepReport::peak_bytes.

#ifndef ACTORS_PLANNING_EXPECTED_MEMORY_H_
#define ACTORS_PLANNING_EXPECTED_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Bytes of a rank.
struct ExpectedMemory {
  double parameters = 0;  // and buffers
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  int ranks = 1;  // of the job

  // All but activations.
  double held() const { return parameters + gradients + optimizer; }
  double total() const { return held() + activations; }
  // The largest part first.
  std::string ToString() const;
};

// What ranks need, by coordinate along pp. Errors of the job's model and
// optimizer.
absl::StatusOr<std::vector<ExpectedMemory>> ExpectMemoryOfRanks(
    const JobSpec& spec, const pipeline::Plan& plan);
// What the rank needs that needs most.
absl::StatusOr<ExpectedMemory> ExpectMemory(const JobSpec& spec,
                                            const pipeline::Plan& plan);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_EXPECTED_MEMORY_H_
