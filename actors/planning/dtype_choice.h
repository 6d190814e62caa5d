// Chooses the dtype of a job that leaves it open (JobSpec::open_dtype): that of
// the plan of the checkpoint to resume from, else the fastest by measurement.
//
//   spec.open_dtype.emplace();
//   spec.open_dtype->set = [](nn::DType dtype, JobSpec& spec) {
//     spec.dtype = dtype;
//     spec.model = [dtype] { return MakeMyModel(dtype); };
//     spec.optimizer = [dtype] { return MakeMyOptimizer(dtype); };
//   };
//   spec.open_dtype->measure = MeasureStepSeconds;  // actors/step_seconds.h
//   RunJob(spec);
//
// JobSpec::note is called with a choice that was measured.

#ifndef ACTORS_PLANNING_DTYPE_CHOICE_H_
#define ACTORS_PLANNING_DTYPE_CHOICE_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// Returns `spec` with the dtype of `plan`, or if that is null, with the fastest
// candidate.
//   kInvalidArgument: open_dtype has no candidates, or no `set`.
//   the error of `measure`.
absl::StatusOr<JobSpec> WithDType(const JobSpec& spec,
                                  const pipeline::Plan* plan);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_DTYPE_CHOICE_H_
