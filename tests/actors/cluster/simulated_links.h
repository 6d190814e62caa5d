// The data plane of a simulated cluster: a fabric for each process, over the
// simulated links of comm/sim, which the faults of the control plane strike
// too.
//
//   SimulatedLinks links(system, scheduler, network, /*nodes=*/3, /*seed=*/7);
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<comm::Fabric> fabric,
//                           links.MakeFabric(node, std::move(options)));
//   links.OnFault(fault, /*over=*/false);
//   while (scheduler.Step()) links.Wake();
//
// Each node has a driver, which stands for the thread of its fabric: a task
// that the seed lets go on as it does actors, and that stands still with its
// node. Frames count as messages between nodes.
//
// Threads: one. Lifetime: longer than its fabrics.

#ifndef TESTS_ACTORS_CLUSTER_SIMULATED_LINKS_H_
#define TESTS_ACTORS_CLUSTER_SIMULATED_LINKS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/sim/fault_plan.h"
#include "actors/sim/seeded_scheduler.h"
#include "actors/sim/simulated_network.h"
#include "comm/fabric.h"
#include "comm/sim/sim_link.h"

namespace troupe::actors {

class SimulatedLinks {
 public:
  SimulatedLinks(caf::actor_system& system, SeededScheduler& scheduler,
                 SimulatedNetwork& network, int nodes, std::uint64_t seed);
  ~SimulatedLinks();

  // Node `node` is process `node`. Once for each; its thread, links and grace
  // are set here.
  absl::StatusOr<std::shared_ptr<comm::Fabric>> MakeFabric(
      int node, comm::FabricOptions options);

  // Of SimulatedNetworkOptions.
  void OnFault(const Fault& fault, bool over);
  // After each step of the scheduler: what ran may have left work.
  void Wake();
  // All nodes go on, and links are whole.
  void Thaw();

 private:
  class Driver;

  void CountFrames();
  void SetCut(int a, int b, int by);

  SimulatedNetwork& network_;
  comm::SimNetwork links_;
  std::vector<std::unique_ptr<Driver>> drivers_;  // by node
  std::map<std::pair<int, int>, int> cuts_;       // by link
  std::int64_t counted_ = 0;                      // frames
  bool in_vain_ = false;  // a driver had nothing to do in the last step
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_SIMULATED_LINKS_H_
