#include "actors/crew.h"

#include <utility>
#include <vector>

#include "actors/checkpointer.h"
#include "actors/comm_strand.h"
#include "actors/compute_strand.h"
#include "actors/loader.h"
#include "actors/rank.h"
#include "actors/supervisor.h"

namespace troupe::actors {
namespace {

template <typename Handle>
void AddMember(Crew& crew, const Handle& actor, int rank, std::string name) {
  crew.members.push_back(
      {caf::actor_cast<caf::strong_actor_ptr>(actor), rank, std::move(name)});
}

}  // namespace

SupervisorActor SpawnCrew(caf::actor_system& system,
                          const ProcessContextPtr& process) {
  const pipeline::Mesh& mesh = process->plan->mesh;
  auto crew = std::make_shared<Crew>();
  SupervisorActor supervisor =
      SpawnStrand(system, SupervisorBehavior, process, crew);
  std::vector<ComputeActor> computes;
  std::vector<CommActor> comms;
  for (const RankContextPtr& context : process->ranks) {
    const int rank = context->rank;
    LoaderActor loader =
        SpawnStrand(system, LoaderBehavior, context, supervisor);
    ComputeActor compute =
        SpawnStrand(system, ComputeBehavior, context, supervisor);
    CommActor comm =
        SpawnStrand(system, CommBehavior, context, supervisor, compute);
    RankActor rank_actor =
        system.spawn(RankBehavior, context, supervisor, loader, compute);
    AddMember(*crew, rank_actor, rank, "rank");
    AddMember(*crew, loader, rank, "loader");
    AddMember(*crew, compute, rank, "compute");
    AddMember(*crew, comm, rank, "comm");
    crew->ranks.push_back(rank_actor);
    computes.push_back(compute);
    comms.push_back(comm);
  }
  for (const RankContextPtr& context : process->ranks) {
    const int rank = context->rank;
    const pipeline::Mesh::Coords& at = context->coords;
    auto peers = std::make_shared<ComputePeers>();
    peers->rank = crew->ranks[rank];
    peers->comm = comms[rank];
    if (at.pp > 0) {
      peers->previous_stage = computes[mesh.RankOf({at.dp, at.pp - 1})];
    }
    if (at.pp + 1 < mesh.pp()) {
      peers->next_stage = computes[mesh.RankOf({at.dp, at.pp + 1})];
    }
    caf::anon_send(computes[rank], ComputePeersPtr(std::move(peers)));
  }
  crew->checkpointer =
      SpawnStrand(system, CheckpointerBehavior, process, supervisor);
  AddMember(*crew, crew->checkpointer, /*rank=*/-1, "checkpointer");
  // The crew is complete before the supervisor reads it.
  caf::anon_send(supervisor, begin_atom::value);
  return supervisor;
}

}  // namespace troupe::actors
