// Estimates the memory of the tensors of a job's ranks before it begins, so
// that a user can see in time that they will not fit.
//
//   TROUPE_ASSIGN_OR_RETURN(const ExpectedMemory memory,
//                           ExpectMemory(spec, plan));
//   memory.ToString();
//   // "1.8 MiB a rank (activations 1.3 MiB, parameters 174 KiB, ...)"
//
// Parameters, gradients and optimizer states are the sizes of arenas without
// padding. Activations are an upper bound: the outputs of all ops that are not
// recomputed (nn/modules/recompute.h), for as many micro-batches as the rank's
// table has under way at once. Batches and the kernels' own memory are not
// counted. StepReport::peak_bytes has the measured value.

#ifndef ACTORS_PLANNING_EXPECTED_MEMORY_H_
#define ACTORS_PLANNING_EXPECTED_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Bytes of one rank.
struct ExpectedMemory {
  double parameters = 0;  // parameters and buffers
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  int ranks = 1;  // number of the job's ranks

  // All but activations.
  double held() const { return parameters + gradients + optimizer; }
  double total() const { return held() + activations; }
  // Returns the total and its parts, the largest part first.
  std::string ToString() const;
};

// Returns the memory of ranks by coordinate along pp. Errors of the job's model
// and optimizer.
absl::StatusOr<std::vector<ExpectedMemory>> ExpectMemoryOfRanks(
    const JobSpec& spec, const pipeline::Plan& plan);
// Returns the memory of the rank that needs most.
absl::StatusOr<ExpectedMemory> ExpectMemory(const JobSpec& spec,
                                            const pipeline::Plan& plan);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_EXPECTED_MEMORY_H_
