// Makes whole backwards of halves that stand beside each other: "I0 W0" becomes
// "B0". The numbers are the same, to the bit (nn/autograd/tape.h); a whole one
// finds in the cache what two halves read from memory, and frees activations
// op by op. In return the gradient of its input is there later.
//
//   // Nobody waits for gradients of the first stage's input.
//   table = JoinBackwards(std::move(table), [](const Action& inputs) {
//     return inputs.chunk == 0;
//   });

#ifndef PIPELINE_JOIN_BACKWARDS_H_
#define PIPELINE_JOIN_BACKWARDS_H_

#include <functional>

#include "pipeline/schedule.h"

namespace troupe::pipeline {

// `table` has compute actions alone. `joins` is asked for each I that its W
// follows at once.
StepTable JoinBackwards(StepTable table,
                        const std::function<bool(const Action& inputs)>& joins);

}  // namespace troupe::pipeline

#endif  // PIPELINE_JOIN_BACKWARDS_H_
