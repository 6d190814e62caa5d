#include "actors/crew.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "actors/checkpointer.h"
#include "actors/comm_strand.h"
#include "actors/compute_strand.h"
#include "actors/loader.h"
#include "actors/rank.h"
#include "actors/reporter.h"
#include "actors/stage_link.h"
#include "actors/supervisor.h"

namespace troupe::actors {
namespace {

// The way from a rank to the stages of its replica, those of its own chunks
// among them; null where there is one stage.
std::shared_ptr<StageLink> LinkStages(
    const pipeline::Plan& plan, int rank,
    const std::vector<ComputeActor>& computes) {
  if (plan.stages.size() == 1) return nullptr;
  const std::vector<int> ranks = plan.mesh.Group(rank, pipeline::kPpAxis);
  std::vector<ComputeActor> stages;
  for (const pipeline::StagePlan& stage : plan.stages) {
    stages.push_back(computes[ranks[stage.place.pp]]);
  }
  return std::make_shared<LocalStageLink>(std::move(stages));
}

// The actors so far: where an exception (out of memory, say) ends the spawning,
// they end too.
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

}  // namespace

SupervisorActor SpawnCrew(caf::actor_system& system,
                          const ProcessContextPtr& process,
                          std::shared_ptr<const Checkpoint> checkpoint) {
  Spawned spawned;
  auto crew = std::make_shared<Crew>();
  SupervisorActor supervisor =
      spawned.Keep(SpawnStrand(system, SupervisorBehavior, process, crew));
  crew->reporter =
      spawned.Keep(SpawnStrand(system, ReporterBehavior, process, supervisor));
  const int writers = process->hooks == nullptr
                          ? 1
                          : std::max(1, process->hooks->checkpointers);
  for (int i = 0; i < writers; ++i) {
    crew->checkpointers.push_back(spawned.Keep(
        SpawnStrand(system, CheckpointerBehavior, process, supervisor)));
  }
  std::vector<ComputeActor> computes;
  std::vector<CommActor> comms;
  for (const RankContextPtr& context : process->ranks) {
    RankStrands strands;
    strands.loader =
        spawned.Keep(SpawnStrand(system, LoaderBehavior, context, supervisor));
    strands.compute = spawned.Keep(
        SpawnStrand(system, ComputeBehavior, context, supervisor, checkpoint));
    strands.comm = spawned.Keep(SpawnStrand(system, CommBehavior, context,
                                            supervisor, strands.compute));
    strands.checkpointer = crew->checkpointers[context->rank % writers];
    computes.push_back(strands.compute);
    comms.push_back(strands.comm);
    crew->ranks.push_back(spawned.Keep(
        system.spawn(RankBehavior, context, supervisor, std::move(strands))));
  }
  for (std::size_t i = 0; i < computes.size(); ++i) {
    auto peers = std::make_shared<ComputePeers>();
    peers->rank = crew->ranks[i];
    peers->comm = comms[i];
    peers->stages =
        LinkStages(*process->plan, process->ranks[i]->rank, computes);
    caf::anon_send(computes[i], ComputePeersPtr(std::move(peers)));
  }
  // The crew is complete before the supervisor reads it.
  caf::anon_send(supervisor, begin_atom::value);
  spawned.Release();
  return supervisor;
}

}  // namespace troupe::actors
