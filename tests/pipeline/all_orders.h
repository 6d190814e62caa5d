// A model checker: visits every reachable state of the tables of all ranks of a
// mesh once, and so all orders in which they can run (table_simulator.h samples
// some by seeds).
//
//   AllOrders all = TryAllOrders(Mesh(/*dp=*/1, /*pp=*/3), tables, placement,
//                                /*bounds=*/{3, 2, 1});
//   all.error;    // "" when no state but the end is without a next step
//   all.states;   // how many there are
//
// A step is an event that may happen next in the engine: a rank starts the
// compute action that its cursor offers; a compute action makes its buckets
// ready, or ends; a message that was sent arrives, in any order; a collective
// that all of its group have started ends on one of them. Actions that take no
// time (sends, updates, starts of collectives) run as soon as they are offered:
// a delay would equal a slower message. The rank's TableCursor
// (pipeline/table/table_cursor.h) decides which actions may start, by the
// tables' needs, as in production after BoundActivations() or
// KeepComputeOrder().
//
// Each state is checked independently of the cursors: an action's needs are
// met; a rank computes one action and holds no more activations than its bound;
// micro-batches, and the collectives of a group, are in order; and the action
// that a cursor offers does not depend on the path to the state.
//
// Cost: some million states a second; a state takes about 40 bytes. A table has
// at most 64 actions.

#ifndef TESTS_PIPELINE_ALL_ORDERS_H_
#define TESTS_PIPELINE_ALL_ORDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/mesh.h"
#include "pipeline/table/placement.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

struct AllOrders {
  // "": all orders end. Otherwise the error, and the shortest path to it:
  // "rank 0 has left RG0 B0, rank 1 has left RA0 F0 B0, after: 0:F0 0:F0.",
  // where "F0" is a start, "F0." an end.
  std::string error;
  std::int64_t states = 0;
  // Per rank: the largest number of forwards whose backward had not ended.
  std::vector<int> activations_max;
};

// `tables`, `bounds`: indexed by rank.
AllOrders TryAllOrders(const Mesh& mesh, const std::vector<StepTable>& tables,
                       const Placement& placement,
                       const std::vector<int>& bounds);

}  // namespace troupe::pipeline

#endif  // TESTS_PIPELINE_ALL_ORDERS_H_
