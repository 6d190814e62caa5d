// How a job whose dtype is open (JobSpec::open_dtype) gets one: by the plan of
// the checkpoint that it goes on from, else by the time that a step takes.
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
// A choice that was measured is told by JobSpec::note.

#ifndef ACTORS_PLANNING_DTYPE_CHOICE_H_
#define ACTORS_PLANNING_DTYPE_CHOICE_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// `spec` with the dtype of `plan`, or of its own choice where that is null.
//   kInvalidArgument: it has no candidates, or none can be set.
//   the measuring's error.
absl::StatusOr<JobSpec> WithDType(const JobSpec& spec,
                                  const pipeline::Plan* plan);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_DTYPE_CHOICE_H_
