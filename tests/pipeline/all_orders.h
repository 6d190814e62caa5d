// Looks at all orders in which the tables of all ranks of a mesh can run, where
// seeds look at some (table_simulator.h): each state that can be reached, once.
//
//   AllOrders all = TryAllOrders(Mesh(/*dp=*/1, /*pp=*/3), tables, placement,
//                                /*bounds=*/{3, 2, 1});
//   all.error;    // "" when no state but the end is without a next step
//   all.states;   // how many there are
//
// A step is whatever may happen next, as it may in the engine: a rank starts
// the compute action that its cursor offers; one makes its buckets ready, or
// ends; a message that was sent arrives, in any order; a collective that all of
// its group have started ends on one of them. What takes no time (sends,
// updates, starts of collectives) is done as soon as it is offered: later would
// be the same as a message that is longer under way. What a rank may start,
// its own TableCursor says (pipeline/table_cursor.h), with the needs that the
// tables have: those of production, after BoundActivations() or
// KeepComputeOrder().
//
// Each state is looked at by itself, whatever the cursors say: whether an
// action's needs are there, a rank computes one thing, keeps no more
// activations than its bound, and micro-batches, and the collectives of a
// group, are in order; and that what a cursor offers does not depend on the way
// to the state.
//
// Cost: some million states a second; a state takes about 40 bytes. A table has
// at most 64 actions.

#ifndef TESTS_PIPELINE_ALL_ORDERS_H_
#define TESTS_PIPELINE_ALL_ORDERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/mesh.h"
#include "pipeline/placement.h"
#include "pipeline/schedule.h"

namespace troupe::pipeline {

struct AllOrders {
  // "": all orders end. Otherwise what went wrong, and the shortest way to it:
  // "rank 0 has left RG0 B0, rank 1 has left RA0 F0 B0, after: 0:F0 0:F0.",
  // where "F0" is a start, "F0." an end.
  std::string error;
  std::int64_t states = 0;
  // By rank: forwards whose backward had not ended, at most.
  std::vector<int> activations_max;
};

// `tables`, `bounds`: by rank.
AllOrders TryAllOrders(const Mesh& mesh, const std::vector<StepTable>& tables,
                       const Placement& placement,
                       const std::vector<int>& bounds);

}  // namespace troupe::pipeline

#endif  // TESTS_PIPELINE_ALL_ORDERS_H_
