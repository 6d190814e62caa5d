// Checks that ranks ran their actions in an order that their tables allow: each
// after all that it needs (a linear extension of the needs), and if the plan
// has strict dispatch, the compute actions in the order of the table.
//
//   ExecutedOrder order(plan);
//   for (const TraceEvent& event : recorder.events()) {
//     TROUPE_RETURN_IF_ERROR(order.See(event));
//   }
//
// The tables are the plan's, even if a test made a rank run another one. The
// signal kBucketReleased is not checked, since it leaves no event.

#ifndef ACTORS_SIM_EXECUTED_ORDER_H_
#define ACTORS_SIM_EXECUTED_ORDER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "actors/tracing/trace.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class ExecutedOrder {
 public:
  // `plan` outlives it.
  explicit ExecutedOrder(const pipeline::Plan& plan);

  // Checks the next event of the run.
  //   kFailedPrecondition: names rank, step, action and the need.
  absl::Status See(const TraceEvent& event);

 private:
  // The table of the ranks at one coordinate along pp.
  struct Table {
    pipeline::StepTable table;
    absl::flat_hash_map<std::string, int> places;  // action indices, by name
  };
  // Progress of a rank in a step.
  struct Progress {
    std::vector<bool> begun, done;  // indexed by action
    // Number of times that each bucket, as chunk and number, was ready.
    std::map<std::pair<int, int>, int> ready;
  };

  // Returns the first unmet need of `action`, as in "F0"; empty: none.
  std::string Missing(const Table& table, const pipeline::Action& action,
                      const Progress& progress) const;
  bool IsThere(const Table& table, const pipeline::Signal& need,
               const Progress& progress) const;

  const pipeline::Plan& plan_;
  std::vector<Table> tables_;  // indexed by coordinate along pp
  std::map<std::pair<int, std::int64_t>, Progress> progress_;  // rank, step
};

}  // namespace troupe::actors

#endif  // ACTORS_SIM_EXECUTED_ORDER_H_
