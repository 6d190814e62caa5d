// Joins adjacent halves of a backward into a whole one: "I0 W0" becomes "B0".
// The gradients are the same, to the bit (nn/autograd/tape.h). A whole backward
// finds in the cache what two halves read from memory, and frees activations op
// by op; but it completes the gradient of its input later.
//
//   // Nobody waits for gradients of the first stage's input.
//   table = JoinBackwards(std::move(table), [](const Action& inputs) {
//     return inputs.chunk == 0;
//   });

#ifndef PIPELINE_TABLE_JOIN_BACKWARDS_H_
#define PIPELINE_TABLE_JOIN_BACKWARDS_H_

#include <functional>

#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

// `table` has compute actions alone. `joins` returns whether to join an I and
// the W that follows it directly.
StepTable JoinBackwards(StepTable table,
                        const std::function<bool(const Action& inputs)>& joins);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_JOIN_BACKWARDS_H_
