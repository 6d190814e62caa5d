// Searches for the tables with the shortest step, for given times and within a
// memory limit: among the named schedules, list schedules under several
// preferences, and, if the step is small, all orders.
//
//   ScheduleSearchOptions options;
//   options.pp = 4;
//   options.micro_batches = 8;
//   options.costs_of = [&](int stages) { return CostsOfParts(stages); };
//   options.memory_limit = 5e9;
//   TROUPE_ASSIGN_OR_RETURN(const FoundSchedule found,
//                           SearchSchedule(options));
//   found.name, found.step.seconds;                 // "zb_v", 0.43
//
// If a whole backward takes less than its halves (StageCosts::backward),
// adjacent halves are joined where that makes the step shorter.
//
// The result is never longer than the best named schedule that keeps the limit.
// The same options give the same tables.

#ifndef PIPELINE_SCHEDULES_SCHEDULE_SEARCH_H_
#define PIPELINE_SCHEDULES_SCHEDULE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/schedules/step_simulation.h"
#include "pipeline/table/placement.h"

namespace troupe::pipeline {

struct ScheduleSearchOptions {
  int pp = 1;
  int micro_batches = 1;
  // Returns the costs of a model cut into `stages` stages: pp times chunks.
  std::function<StepCosts(int stages)> costs_of;
  // Numbers of chunks per rank to try.
  std::vector<int> chunks = {1, 2};
  // Limit on a rank's activations; and limit on these plus what its stages hold
  // all the time (StageCosts::held).
  double memory_limit = std::numeric_limits<double>::infinity();
  double total_limit = std::numeric_limits<double>::infinity();
  // Limit on the orders that the exact search looks at; 0: no exact search.
  std::int64_t exact_limit = 200'000;
};

struct FoundSchedule {
  std::string name;  // name of a schedule, or "played" or "exact"
  Placement placement;
  Tables tables;
  SimulatedStep step;
  // Whether no order of actions of this placement is shorter.
  bool is_shortest = false;
};

//   kInvalidArgument: a size is below 1, or `costs_of` is null.
//   kResourceExhausted: no schedule keeps the limit.
absl::StatusOr<FoundSchedule> SearchSchedule(
    const ScheduleSearchOptions& options);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_SCHEDULE_SEARCH_H_
