// What each part of a job's model costs on the job's device, measured: what
// cuts (pipeline/cut_search.h), schedules and predictions are made of.
//
//   TROUPE_ASSIGN_OR_RETURN(const pipeline::ModelCosts costs,
//                           MeasureCosts(spec));
//   costs.units[3].path;                            // "h.2"
//   costs.units[3].costs.forward;                   // 0.0071 seconds
//
// The parts are those that no cut divides (pipeline/balance.h, CutPlaces). Each
// is a chunk (actors/chunks/chunk.h) with the job's kernels, micro-batch, loss,
// optimizer and threads, and runs among its neighbours as in a step, so that it
// finds the caches as they leave them: forward; then backward, whole; then
// forward and the halves of a backward; then its update. The medians of rounds
// are the result. Seconds and bytes.
//
// Ranks of one machine share its memory and its clock, so as many threads
// measure at once as ranks compute at once here, each a contiguous part of the
// model: together they take the memory of one rank with the whole model. On a
// device other than the host one measures alone.
//
// Nothing is left behind. Takes half a second, or a few rounds. Errors of the
// job's model, kernels and data; kInvalidArgument where the model is no
// Sequential.

#ifndef ACTORS_PLANNING_MEASURE_COSTS_H_
#define ACTORS_PLANNING_MEASURE_COSTS_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "pipeline/cut_search.h"

namespace troupe::actors {

// Whatever `spec` says of cuts and schedules counts for nothing; its mesh says
// how many ranks compute at once.
absl::StatusOr<pipeline::ModelCosts> MeasureCosts(const JobSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_MEASURE_COSTS_H_
