// Looks for the tables with the shortest step, for given times and within a
// limit of memory: among those with names, those that playing the step makes
// under several rules, and, where the step is small, all there are.
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
// Where a whole backward takes less than its halves (StageCosts::backward),
// halves that stand beside each other are joined as far as that makes a step
// shorter.
//
// What is found is never longer than the best named schedule that keeps the
// limit. The same options find the same tables.

#ifndef PIPELINE_SCHEDULES_SCHEDULE_SEARCH_H_
#define PIPELINE_SCHEDULES_SCHEDULE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pipeline/placement.h"
#include "pipeline/schedules/schedules.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::pipeline {

struct ScheduleSearchOptions {
  int pp = 1;
  int micro_batches = 1;
  // The costs of so many stages: pp of them, or pp times chunks.
  std::function<StepCosts(int stages)> costs_of;
  // Numbers of chunks that a rank may have.
  std::vector<int> chunks = {1, 2};
  // Of a rank's activations; and of these with what its stages hold all the
  // time (StageCosts::held).
  double memory_limit = std::numeric_limits<double>::infinity();
  double total_limit = std::numeric_limits<double>::infinity();
  // Orders that are looked at where all are asked for; 0: none.
  std::int64_t exact_limit = 200'000;
};

struct FoundSchedule {
  std::string name;  // of a schedule, or "played" or "exact"
  Placement placement;
  Tables tables;
  SimulatedStep step;
  // Whether no order of actions of this placement is shorter.
  bool is_shortest = false;
};

//   kInvalidArgument: a size is below 1, or there are no costs.
//   kResourceExhausted: no schedule keeps the limit.
absl::StatusOr<FoundSchedule> SearchSchedule(
    const ScheduleSearchOptions& options);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_SCHEDULE_SEARCH_H_
