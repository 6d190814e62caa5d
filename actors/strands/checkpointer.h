// Writes checkpoints, on a strand of its own, while training goes on. Each
// process has one, for the shards that its ranks hold; that of the supervisor's
// process also makes the folders and gives them their names.
//
// Takes  BeginCheckpoint    from the supervisor -> CheckpointOpened {folder}
//        WriteShard        from a rank -> ShardSaved to the supervisor
//        CommitCheckpoint  from the supervisor -> CheckpointSaved {path}
// Fails  with the writer's status, as a Failure of the rank whose shard it was;
//        the unfinished folder is removed, the last good checkpoint stays as it
//        was

#ifndef ACTORS_STRANDS_CHECKPOINTER_H_
#define ACTORS_STRANDS_CHECKPOINTER_H_

#include <string>

#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"

namespace troupe::actors {

struct CheckpointerState {
  static inline const char* name = "checkpointer";
  ProcessContextPtr process;
  std::string unfinished;  // a folder made here that has no name yet

  // A job that ends in the middle of a checkpoint leaves none behind.
  ~CheckpointerState();
};

CheckpointerActor::behavior_type CheckpointerBehavior(
    CheckpointerActor::stateful_pointer<CheckpointerState> self,
    ProcessContextPtr process, SupervisorActor supervisor);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_CHECKPOINTER_H_
