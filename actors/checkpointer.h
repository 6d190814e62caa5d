// Writes checkpoints, on a strand of its own, while training goes on.
//
// Takes  SaveRequest {step, one snapshot per stage}
// Gives  Saved {step, path}
// Fails  with the writer's status, as the request's error; the last good
//        checkpoint stays as it was

#ifndef ACTORS_CHECKPOINTER_H_
#define ACTORS_CHECKPOINTER_H_

#include "actors/messages.h"
#include "actors/process_context.h"

namespace troupe::actors {

struct CheckpointerState {
  static inline const char* name = "checkpointer";
};

CheckpointerActor::behavior_type CheckpointerBehavior(
    CheckpointerActor::stateful_pointer<CheckpointerState> self,
    ProcessContextPtr process, SupervisorActor supervisor);

}  // namespace troupe::actors

#endif  // ACTORS_CHECKPOINTER_H_
