// Writes checkpoints, on a strand of its own, while training continues. Each
// process has one checkpointer, for the shards of its ranks; that of the
// supervisor's process also creates the folders and renames finished ones to
// their final names.
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
  // Path of a folder that this actor made and that has no final name yet.
  std::string unfinished;

  // Removes the unfinished folder.
  ~CheckpointerState();
};

CheckpointerActor::behavior_type CheckpointerBehavior(
    CheckpointerActor::stateful_pointer<CheckpointerState> self,
    ProcessContextPtr process, SupervisorActor supervisor);

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_CHECKPOINTER_H_
