// Finds the shortest step of a small pipeline among all orders of its actions,
// by branch and bound over active schedules.
//
//   ListScheduleOptions options;                   // list_schedule.h
//   const ExactSchedule exact =
//       FindExactSchedule(options, /*shorter_than=*/30, /*nodes_max=*/200'000);
//   if (exact.tables) return *exact.tables;
//   exact.looked_at_all;                           // then none is shorter
//
// The number of orders grows exponentially: two ranks with three micro-batches
// count as small. With a memory limit, the result may not be the shortest:
// orders that let a rank wait in order to hold less are not tried.
//
// Source: Giffler and Thompson 1960, Algorithms for solving production
// scheduling problems, Operations Research 8(4).

#ifndef PIPELINE_SCHEDULES_EXACT_SCHEDULE_H_
#define PIPELINE_SCHEDULES_EXACT_SCHEDULE_H_

#include <cstdint>
#include <optional>

#include "pipeline/schedules/list_schedule.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::pipeline {

struct ExactSchedule {
  std::optional<Tables> tables;  // none: no order is below `shorter_than`
  bool looked_at_all = false;
};

// `options`: those of ListSchedule(), which has accepted them; preferences are
// ignored. `nodes_max`: limit on the orders that are begun.
ExactSchedule FindExactSchedule(const ListScheduleOptions& options,
                                double shorter_than, std::int64_t nodes_max);

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_EXACT_SCHEDULE_H_
