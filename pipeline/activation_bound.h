// Keeps a rank that runs its actions as their inputs come (docs/schedules.md)
// from holding more activations than its table does in its own order.
//
//   const int most = MostActivations(table);      // of all chunks together
//   BoundActivations(table);
//
// A forward that may overtake then also needs those backwards that the table
// has before it, down to the one that makes room. So actions still run by
// arrival, and nothing waits that would not wait in the table's order: tables
// that end in their own order end under every other one, too.
//
// The engine does this to the table that it runs: the table's text does not
// show it.

#ifndef PIPELINE_ACTIVATION_BOUND_H_
#define PIPELINE_ACTIVATION_BOUND_H_

#include "pipeline/schedule.h"

namespace troupe::pipeline {

// Forwards without the end of their backward (B or W), at most, where the table
// runs in its order.
int MostActivations(const StepTable& table);

// Adds the needs. Linear in the table and its chunks.
void BoundActivations(StepTable& table);

}  // namespace troupe::pipeline

#endif  // PIPELINE_ACTIVATION_BOUND_H_
