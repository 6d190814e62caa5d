// The actors of a job in one process of a simulated cluster, from start to end:
// in process 0 the supervisor and its crew, in the others their ranks.
//
//   ProcessActors actors;
//   Muster muster = actors.SpawnSupervisor(system, job);          // process 0
//   CrewReady ready = actors.SpawnRanks(system, job, supervisor); // the others
//   actors.End(generation);         // those that are left
//
// Threads: one.

#ifndef TESTS_ACTORS_CLUSTER_PROCESS_ACTORS_H_
#define TESTS_ACTORS_CLUSTER_PROCESS_ACTORS_H_

#include <cstdint>

#include "actors/caf/caf.h"
#include "actors/cluster/cluster_messages.h"
#include "actors/supervision/spawn_crew.h"
#include "tests/actors/cluster/node_job.h"

namespace troupe::actors {

// Ends an actor whatever it does; null: none.
template <typename Handle>
void Kill(const Handle& actor) {
  if (actor != nullptr) caf::anon_send_exit(actor, caf::exit_reason::kill);
}

class ProcessActors {
 public:
  // Spawns the supervisor and its crew. Returns the message to the coordinator.
  Muster SpawnSupervisor(caf::actor_system& system, NodeJob& job);
  // Spawns the ranks of a process other than 0. Returns the message to the
  // agent and to the coordinator.
  CrewReady SpawnRanks(caf::actor_system& system, NodeJob& job,
                       const SupervisorActor& supervisor);
  // Returns the supervisor that SpawnRanks() got; null before, and in process
  // 0.
  const SupervisorActor& supervisor() const { return supervisor_; }
  // Ends the actors that are left, of the job's `generation`.
  void End(std::int32_t generation) const;

 private:
  LocalCrew crew_;
  SupervisedCrew supervised_;  // null handles in a process other than 0
  SupervisorActor supervisor_;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_PROCESS_ACTORS_H_
