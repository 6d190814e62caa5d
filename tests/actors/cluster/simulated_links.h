// The data plane of a simulated cluster: a fabric for each process, over the
// simulated links of comm/sim. The faults of the control plane strike these
// links too.
//
//   SimulatedLinks links(system, scheduler, network, /*nodes=*/3, /*seed=*/7);
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<comm::Fabric> fabric,
//                           links.MakeFabric(node, std::move(options)));
//   links.OnFault(fault, /*over=*/false);
//   while (scheduler.Step()) links.Wake();
//
// Each node has a driver, which stands for the thread of its fabric: a task
// that is scheduled by the seed like an actor, and that stops with its node.
// Frames count as messages between nodes.
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

  // Makes the fabric of node `node`, which is process `node`; called once for
  // each. Sets the options for thread, links and grace.
  absl::StatusOr<std::shared_ptr<comm::Fabric>> MakeFabric(
      int node, comm::FabricOptions options);

  // Callback for SimulatedNetworkOptions.
  void OnFault(const Fault& fault, bool over);
  // Wakes the drivers. Called after each step of the scheduler, since it may
  // have left them work.
  void Wake();
  // Resumes all nodes and repairs all links.
  void Thaw();

 private:
  class Driver;

  void CountFrames();
  void SetCut(int a, int b, int by);

  SimulatedNetwork& network_;
  comm::SimNetwork links_;
  std::vector<std::unique_ptr<Driver>> drivers_;  // one for each node
  std::map<std::pair<int, int>, int> cuts_;       // number of cuts of each link
  std::int64_t counted_ = 0;                      // number of frames
  bool in_vain_ = false;  // whether a driver had no work in the last step
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_SIMULATED_LINKS_H_
