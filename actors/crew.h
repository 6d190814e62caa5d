// Spawns all actors of a job, whose ranks all live in this process, and wires
// them up, in whatever system: the real
// one (job.cc) or the simulated one (actors/sim).
//
//   SupervisorActor supervisor = SpawnCrew(system, process);
//   // The job runs; process->outcome tells how it ended.

#ifndef ACTORS_CREW_H_
#define ACTORS_CREW_H_

#include "actors/messages.h"
#include "actors/process_context.h"

namespace troupe::actors {

// `system` must have the message types of actors/messages.h.
SupervisorActor SpawnCrew(caf::actor_system& system,
                          const ProcessContextPtr& process);

}  // namespace troupe::actors

#endif  // ACTORS_CREW_H_
