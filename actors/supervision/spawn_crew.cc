#include "actors/supervision/spawn_crew.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "actors/strands/checkpointer.h"
#include "actors/strands/comm_strand.h"
#include "actors/strands/compute_strand.h"
#include "actors/strands/fabric_stage_link.h"
#include "actors/strands/loader.h"
#include "actors/strands/rank.h"
#include "actors/strands/reporter.h"
#include "actors/strands/stage_link.h"
#include "actors/supervision/supervisor.h"

namespace troupe::actors {
namespace {

// The compute strands by rank; null for ranks of other processes.
using ComputesByRank = std::vector<ComputeActor>;

// Returns the link from a rank to all stages of its replica, its own included;
// null if there is only one stage.
std::shared_ptr<StageLink> LinkStages(const ProcessContext& process, int rank,
                                      const ComputesByRank& computes) {
  const pipeline::Plan& plan = *process.plan;
  if (plan.stages.size() == 1) return nullptr;
  const std::vector<int> replica = plan.mesh.Group(rank, pipeline::kPpAxis);
  std::vector<ComputeActor> stages;
  std::vector<int> ranks;
  for (const pipeline::StagePlan& stage : plan.stages) {
    ranks.push_back(replica[stage.place.pp]);
    stages.push_back(computes[ranks.back()]);
  }
  auto local = LinkLocalStages(std::move(stages), process.hooks);
  if (process.links.is_only()) return local;
  return std::make_shared<FabricStageLink>(process.links.fabric,
                                           process.links.roster, rank,
                                           std::move(ranks), std::move(local));
}

// Scope guard of the actors spawned so far: ends them if an exception (out of
// memory, for example) interrupts the spawning.
class Spawned {
 public:
  ~Spawned() {
    for (const caf::strong_actor_ptr& actor : actors_) {
      caf::anon_send_exit(actor, caf::exit_reason::kill);
    }
  }
  template <typename Handle>
  Handle Keep(Handle actor) {
    actors_.push_back(caf::actor_cast<caf::strong_actor_ptr>(actor));
    return actor;
  }
  void Release() { actors_.clear(); }

 private:
  std::vector<caf::strong_actor_ptr> actors_;
};

// Returns what `spawn` returns, and leaves the actors that it spawned alive.
template <typename Spawn>
auto AllOrNone(const Spawn& spawn) {
  Spawned spawned;
  auto crew = spawn(spawned);
  spawned.Release();
  return crew;
}

// One rank's actor and those of its strands that still need their ComputePeers.
struct SpawnedRank {
  RankActor rank;
  ComputeActor compute;
  CommActor comm;
};

SpawnedRank SpawnRank(caf::actor_system& system, Spawned& spawned,
                      const RankContextPtr& context,
                      const SupervisorActor& supervisor,
                      const CheckpointerActor& checkpointer,
                      const std::shared_ptr<const Checkpoint>& checkpoint) {
  RankStrands strands;
  strands.loader =
      spawned.Keep(SpawnStrand(system, LoaderBehavior, context, supervisor));
  strands.compute = spawned.Keep(
      SpawnStrand(system, ComputeBehavior, context, supervisor, checkpoint));
  strands.comm = spawned.Keep(
      SpawnStrand(system, CommBehavior, context, supervisor, strands.compute));
  strands.checkpointer = checkpointer;
  SpawnedRank rank;
  rank.compute = strands.compute;
  rank.comm = strands.comm;
  rank.rank = spawned.Keep(
      system.spawn(RankBehavior, context, supervisor, std::move(strands)));
  return rank;
}

LocalCrew SpawnRanks(caf::actor_system& system, Spawned& spawned,
                     const ProcessContextPtr& process,
                     const SupervisorActor& supervisor,
                     const std::shared_ptr<const Checkpoint>& checkpoint) {
  LocalCrew crew;
  const int writers = process->hooks == nullptr
                          ? 1
                          : std::max(1, process->hooks->checkpointers);
  for (int i = 0; i < writers; ++i) {
    crew.checkpointers.push_back(spawned.Keep(
        SpawnStrand(system, CheckpointerBehavior, process, supervisor)));
  }
  ComputesByRank computes(process->plan->mesh.size());
  std::vector<SpawnedRank> ranks;
  for (const RankContextPtr& context : process->ranks) {
    ranks.push_back(SpawnRank(system, spawned, context, supervisor,
                              crew.checkpointers[context->rank % writers],
                              checkpoint));
    computes[context->rank] = ranks.back().compute;
    crew.ranks.push_back(ranks.back().rank);
  }
  if (process->links.fabric != nullptr) TakeTransfers(*process, computes);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto peers = std::make_shared<ComputePeers>();
    peers->rank = ranks[i].rank;
    peers->comm = ranks[i].comm;
    peers->stages = LinkStages(*process, process->ranks[i]->rank, computes);
    caf::anon_send(ranks[i].compute, ComputePeersPtr(std::move(peers)));
  }
  return crew;
}

SupervisedCrew SpawnSupervised(
    caf::actor_system& system, Spawned& spawned,
    const ProcessContextPtr& process,
    const std::shared_ptr<const Checkpoint>& checkpoint) {
  SupervisedCrew all;
  all.crew = std::make_shared<Crew>();
  all.supervisor =
      spawned.Keep(SpawnStrand(system, SupervisorBehavior, process, all.crew));
  all.crew->reporter = spawned.Keep(
      SpawnStrand(system, ReporterBehavior, process, all.supervisor));
  LocalCrew local =
      SpawnRanks(system, spawned, process, all.supervisor, checkpoint);
  all.crew->ranks = std::move(local.ranks);
  all.crew->checkpointers = std::move(local.checkpointers);
  if (!process->links.is_only()) {
    all.crew->ranks.resize(process->links.roster->ranks());
    all.crew->checkpointers.resize(process->links.roster->processes());
  }
  return all;
}

}  // namespace

LocalCrew SpawnRanks(caf::actor_system& system,
                     const ProcessContextPtr& process,
                     const SupervisorActor& supervisor,
                     std::shared_ptr<const Checkpoint> checkpoint) {
  return AllOrNone([&](Spawned& spawned) {
    return SpawnRanks(system, spawned, process, supervisor, checkpoint);
  });
}

SupervisedCrew SpawnSupervised(caf::actor_system& system,
                               const ProcessContextPtr& process,
                               std::shared_ptr<const Checkpoint> checkpoint) {
  return AllOrNone([&](Spawned& spawned) {
    return SpawnSupervised(system, spawned, process, checkpoint);
  });
}

SupervisorActor SpawnCrew(caf::actor_system& system,
                          const ProcessContextPtr& process,
                          std::shared_ptr<const Checkpoint> checkpoint) {
  return AllOrNone([&](Spawned& spawned) {
    const SupervisedCrew all =
        SpawnSupervised(system, spawned, process, checkpoint);
    // The crew is complete before the supervisor reads it.
    caf::anon_send(all.supervisor, begin_atom::value);
    return all.supervisor;
  });
}

}  // namespace troupe::actors
