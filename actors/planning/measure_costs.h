// Measures the costs of each part of a job's model on the job's device, for
// cuts (pipeline/cut_search.h), schedules and predictions.
//
//   TROUPE_ASSIGN_OR_RETURN(const pipeline::ModelCosts costs,
//                           MeasureCosts(spec));
//   costs.units[3].path;                            // "h.2"
//   costs.units[3].costs.forward;                   // 0.0071 seconds
//
// The parts, called units, are those that no cut divides (pipeline/balance.h,
// CutPlaces). Each is a chunk (actors/chunks/chunk.h) with the job's kernels,
// micro-batch, loss, optimizer and threads. All run in the order of the model,
// so that each finds the caches as its neighbours leave them. Rounds take
// turns: forward, whole backward, update; and forward, the two halves of a
// backward, update. The results are medians over rounds, in seconds and bytes.
//
// Ranks of one machine share its memory bandwidth and its clock, so as many
// threads measure at once as ranks compute at once here, each a contiguous part
// of the model: together they take the memory of one rank with the whole model.
// On a device other than the host one thread measures alone. Each measures the
// rank at the first coordinate along tp; sums of layers over tp are counted,
// and take no time.
//
// Nothing remains afterwards. Takes half a second, or a few rounds. Errors of
// the job's model, kernels and data; kInvalidArgument: the model is no
// Sequential.

#ifndef ACTORS_PLANNING_MEASURE_COSTS_H_
#define ACTORS_PLANNING_MEASURE_COSTS_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"
#include "pipeline/cut_search.h"

namespace troupe::actors {

// Measures the model of `spec`. Cuts and schedules in `spec` are ignored; its
// mesh has the number of ranks that compute at once.
absl::StatusOr<pipeline::ModelCosts> MeasureCosts(const JobSpec& spec);

}  // namespace troupe::actors

#endif  // ACTORS_PLANNING_MEASURE_COSTS_H_
