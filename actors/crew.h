// Spawns all actors of a job, whose ranks all live in this process, and wires
// them up, in whatever system: the real one (job.cc) or the simulated one
// (actors/sim).
//
//   SupervisorActor supervisor =
//       SpawnCrew(system, process, std::move(checkpoint));
//   // The job runs; process->outcome tells how it ended.

#ifndef ACTORS_CREW_H_
#define ACTORS_CREW_H_

#include <memory>

#include "actors/checkpoint/checkpoint.h"
#include "actors/messages.h"
#include "actors/process_context.h"

namespace troupe::actors {

// `system` must have the message types of actors/messages.h. `checkpoint`: what
// the ranks start from, or null; the last one that has read its part closes it.
SupervisorActor SpawnCrew(caf::actor_system& system,
                          const ProcessContextPtr& process,
                          std::shared_ptr<const Checkpoint> checkpoint);

}  // namespace troupe::actors

#endif  // ACTORS_CREW_H_
