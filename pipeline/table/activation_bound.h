// Bounds the activations of a rank that runs actions as their inputs arrive
// (Dispatch::kArrival, docs/schedules.md) by those that its table order needs.
//
//   const int most = MostActivations(table);      // of all chunks together
//   BoundActivations(table);
//
// It lets a forward that may overtake also need the backwards before it in the
// table, up to the one that frees memory for it. Actions still run by arrival,
// and no action waits that would not wait in table order: if tables end in
// their own order, they end in every order that this allows.
//
// The engine adds these needs to the table that it runs; the table's text does
// not show them.

#ifndef PIPELINE_TABLE_ACTIVATION_BOUND_H_
#define PIPELINE_TABLE_ACTIVATION_BOUND_H_

#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

// Returns the largest number of forwards whose backward (B or W) has not ended,
// if the table runs in its order.
int MostActivations(const StepTable& table);

// Adds the needs. Linear in the table and its chunks.
void BoundActivations(StepTable& table);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_ACTIVATION_BOUND_H_
