#include "tests/actors/cluster/process_actors.h"

namespace troupe::actors {

Muster ProcessActors::SpawnSupervisor(caf::actor_system& system, NodeJob& job) {
  supervised_ = SpawnSupervised(system, job.process(), job.TakeCheckpoint());
  crew_.ranks = supervised_.crew->ranks;
  crew_.checkpointers = supervised_.crew->checkpointers;
  return Muster{supervised_.crew, supervised_.supervisor};
}

CrewReady ProcessActors::SpawnRanks(caf::actor_system& system, NodeJob& job,
                                    const SupervisorActor& supervisor) {
  supervisor_ = supervisor;
  crew_ = actors::SpawnRanks(system, job.process(), supervisor,
                             job.TakeCheckpoint());
  CrewReady ready;
  ready.generation = job.process()->generation;
  ready.process = job.process()->links.number;
  ready.has_folder = job.process()->has_folder;
  for (const RankActor& rank : crew_.ranks) {
    ready.ranks.push_back(caf::actor_cast<caf::strong_actor_ptr>(rank));
  }
  ready.checkpointer =
      caf::actor_cast<caf::strong_actor_ptr>(crew_.checkpointers.front());
  return ready;
}

void ProcessActors::End(std::int32_t generation) const {
  EndRank end;
  end.generation = generation;
  end.code = static_cast<int>(absl::StatusCode::kCancelled);
  for (const RankActor& rank : crew_.ranks) {
    if (rank != nullptr) caf::anon_send(rank, end);
  }
  for (const CheckpointerActor& each : crew_.checkpointers) Kill(each);
  if (supervised_.crew != nullptr) Kill(supervised_.crew->reporter);
  Kill(supervised_.supervisor);
}

}  // namespace troupe::actors
