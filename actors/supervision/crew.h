// Spawns the actors of a job and wires them up, in whatever system: the real
// one (job.cc) or the simulated one (actors/sim).
//
//   SupervisorActor supervisor =
//       SpawnCrew(system, process, std::move(checkpoint));
//   // The job runs; process->outcome tells how it ended.
//
// Where ranks live in several processes, process 0 spawns the supervisor with
// its own part of the crew, every other its ranks alone (actors/cluster).

#ifndef ACTORS_SUPERVISION_CREW_H_
#define ACTORS_SUPERVISION_CREW_H_

#include <memory>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"
#include "actors/supervision/supervisor.h"

namespace troupe::actors {

// The actors of one process that a supervisor talks to.
struct LocalCrew {
  std::vector<RankActor> ranks;  // by ascending rank
  std::vector<CheckpointerActor> checkpointers;
};

// `system` must have the message types of actors/protocol/messages.h.
// `checkpoint`: what the ranks start from, or null; the last one that has read
// its part closes it.
LocalCrew SpawnRanks(caf::actor_system& system,
                     const ProcessContextPtr& process,
                     const SupervisorActor& supervisor,
                     std::shared_ptr<const Checkpoint> checkpoint);

struct SupervisedCrew {
  SupervisorActor supervisor;
  CrewPtr crew;
};

// The supervisor, the reporter and this process's ranks. The crew has empty
// places for the ranks and checkpointers of other processes; when whoever fills
// them is done, the supervisor is sent `begin`.
SupervisedCrew SpawnSupervised(caf::actor_system& system,
                               const ProcessContextPtr& process,
                               std::shared_ptr<const Checkpoint> checkpoint);

// For ranks that all live here: all of it, begun.
SupervisorActor SpawnCrew(caf::actor_system& system,
                          const ProcessContextPtr& process,
                          std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_CREW_H_
