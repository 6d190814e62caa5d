// Makes tables by playing a step: whenever a rank is free, it takes the best of
// the actions that are ready, as far as its memory goes.
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
// while the rank could not keep what the oldest unfinished micro-batch still
// brings: so some micro-batch can always be finished, and the tables end.
//
// Source: list scheduling, Graham 1966; the use for pipelines, Qi et al. 2023,
// arXiv:2401.10241, sec. 3.1.

#ifndef PIPELINE_SCHEDULES_LIST_SCHEDULE_H_
#define PIPELINE_SCHEDULES_LIST_SCHEDULE_H_

#include <limits>

#include "absl/status/statusor.h"
#include "pipeline/placement.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::pipeline {

struct ListScheduleOptions {
  Placement placement;
  int micro_batches = 1;
  StepCosts costs;
  // What the activations of a rank may take, in the unit of the costs.
  double memory_limit = std::numeric_limits<double>::infinity();
  // Backwards in two halves.
  bool splits = true;
  // Forwards go before gradients of inputs, as long as there is memory.
  bool forwards_first = false;
  // Gradients of weights wait until the rank would stand still, or has no
  // memory left; otherwise each follows at once.
  bool puts_weights_off = true;
};

//   kInvalidArgument: sizes are below 1 or do not fit, as SimulateStep().
//   kResourceExhausted: a rank cannot keep one micro-batch.
absl::StatusOr<Tables> ListSchedule(const ListScheduleOptions& options);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_LIST_SCHEDULE_H_
