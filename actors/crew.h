// Spawns all actors of a job and wires them up, in whatever system: the real
// one (job.cc) or the simulated one (actors/sim).
//
//   SupervisorActor supervisor = SpawnCrew(system, runtime);
//   // The job runs; runtime->outcome tells how it ended.

#ifndef ACTORS_CREW_H_
#define ACTORS_CREW_H_

#include "actors/job_runtime.h"
#include "actors/messages.h"

namespace troupe::actors {

// `system` must have the message types of actors/messages.h.
SupervisorActor SpawnCrew(caf::actor_system& system, JobRuntimePtr runtime);

}  // namespace troupe::actors

#endif  // ACTORS_CREW_H_
