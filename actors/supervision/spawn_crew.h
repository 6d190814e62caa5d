// Spawns the actors of a job (its crew) and connects them, in the actor system
// of threads (job.cc) or the simulated one (actors/sim).
//
//   SupervisorActor supervisor =
//       SpawnCrew(system, process, std::move(checkpoint));
//   // The job runs; process->outcome tells how it ended.
//
// If the ranks live in several processes, process 0 spawns the supervisor and
// its own part of the crew; every other process spawns only its ranks
// (actors/cluster).

#ifndef ACTORS_SUPERVISION_SPAWN_CREW_H_
#define ACTORS_SUPERVISION_SPAWN_CREW_H_

#include <memory>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"
#include "actors/supervision/crew.h"
#include "actors/supervision/supervisor.h"

namespace troupe::actors {

// The actors of one process that the supervisor sends messages to.
struct LocalCrew {
  std::vector<RankActor> ranks;  // sorted by rank
  std::vector<CheckpointerActor> checkpointers;
};

// Spawns the ranks of this process, with their strands and checkpointers.
// `system` must have the message types of actors/protocol/messages.h. The ranks
// start from `checkpoint`, which may be null; it is closed when the last of
// them has read its part.
LocalCrew SpawnRanks(caf::actor_system& system,
                     const ProcessContextPtr& process,
                     const SupervisorActor& supervisor,
                     std::shared_ptr<const Checkpoint> checkpoint);

struct SupervisedCrew {
  SupervisorActor supervisor;
  CrewPtr crew;
};

// Spawns the supervisor, the reporter and this process's ranks. In the crew,
// the ranks and checkpointers of other processes are null; the coordinator
// (actors/cluster) fills them in, then sends `begin` to the supervisor.
SupervisedCrew SpawnSupervised(caf::actor_system& system,
                               const ProcessContextPtr& process,
                               std::shared_ptr<const Checkpoint> checkpoint);

// Spawns the crew of a job whose ranks all live in this process, and sends
// `begin` to the supervisor.
SupervisorActor SpawnCrew(caf::actor_system& system,
                          const ProcessContextPtr& process,
                          std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_SPAWN_CREW_H_
