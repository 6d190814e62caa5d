// Makes tables by list scheduling: it simulates a step in which a free rank
// takes the preferred one of the actions that are ready and fit its memory.
//
//   ListScheduleOptions options;
//   options.placement = VPlacement(/*pp=*/4);
//   options.micro_batches = 8;
//   options.costs.stages.assign(8, StageCosts());
//   options.memory_limit = 6;                       // activations of a chunk
//   TROUPE_ASSIGN_OR_RETURN(const Tables tables, ListSchedule(options));
//
// The order of preference: gradients of inputs, since another stage waits for
// them; forwards, the last chunk's first; gradients of weights. A forward waits
// unless the rank could still hold all activations to come of the oldest
// unfinished micro-batch. So some micro-batch can always be finished, and the
// tables end.
//
// Source: list scheduling, Graham 1966; the use for pipelines, Qi et al. 2023,
// arXiv:2401.10241, sec. 3.1.

#ifndef PIPELINE_SCHEDULES_LIST_SCHEDULE_H_
#define PIPELINE_SCHEDULES_LIST_SCHEDULE_H_

#include <limits>

#include "absl/status/statusor.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/placement.h"

namespace troupe::pipeline {

struct ListScheduleOptions {
  Placement placement;
  int micro_batches = 1;
  StepCosts costs;
  // Limit on the activations of a rank, in the unit of the costs.
  double memory_limit = std::numeric_limits<double>::infinity();
  // Whether backwards are split in two halves.
  bool splits = true;
  // Whether forwards go before gradients of inputs as long as memory suffices.
  bool forwards_first = false;
  // Whether gradients of weights wait until the rank would be idle, or has no
  // memory left; otherwise each follows its gradients of inputs directly.
  bool puts_weights_off = true;
};

//   kInvalidArgument: a size is below 1, or an error of SimulateStep().
//   kResourceExhausted: a rank cannot hold one micro-batch.
absl::StatusOr<Tables> ListSchedule(const ListScheduleOptions& options);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_LIST_SCHEDULE_H_
