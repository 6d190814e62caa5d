// A whole job over several processes in one thread: coordinator, agents,
// supervisor, ranks and checkpoint writers are those of production, each of a
// node of a simulated network (actors/sim/simulated_network.h), under a seed
// and a plan of faults. What a process does beside its actors, joining among
// it, is done by a stand-in for cluster_job.cc that waits for messages instead
// of blocking. Their fabrics have simulated links (simulated_links.h), over
// which collectives and the tensors between stages travel; what strikes a node,
// or the way between two, strikes both planes.
//
//   ClusterScenario scenario;
//   scenario.ranks = {1, 2};                  // of two nodes
//   scenario.plan = *ParseFaultPlan("die 1 at 17 heard");
//   const ClusterRun run = SimulateCluster(scenario, /*seed=*/42);
//   run.nodes[0].verdict;                     // as Job::Wait() would say

#ifndef TESTS_ACTORS_CLUSTER_SIMULATED_CLUSTER_H_
#define TESTS_ACTORS_CLUSTER_SIMULATED_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "actors/setup/job_report.h"
#include "actors/sim/fault_plan.h"

namespace troupe::actors {

// What is odd about one node (ClusterScenario::odd_node).
enum class Oddity {
  kNone,
  // It does not belong to the job: it has another configuration, version, or
  // number of processes, or comes with the number of the node before it.
  kOtherConfig,
  kOtherVersion,
  kOtherSize,
  kSameNumber,
  kLate,      // it begins `late` later
  kUnfit,     // it cannot prepare the job; of node 0: nor decide anything
  kNoRanks,   // it cannot make its ranks
  kSlow,      // it makes them `late` later
  kFullDisk,  // its disk is full after odd_at writes
  // One more node comes with its number, to a job that all have joined, after
  // odd_at messages.
  kStranger,
  kStop,  // a stop is requested there after odd_at messages
  kEnd,
};

struct ClusterScenario {
  std::vector<int> ranks = {1, 1};  // of each node
  int stages = 1;                   // pp; the ranks are shared out among them
  FaultPlan plan;
  absl::Duration liveness_timeout = absl::Seconds(10);
  absl::Duration join_timeout = absl::Minutes(1);
  // A step of the simulation takes a time below this.
  absl::Duration message_time_max = absl::ZeroDuration();
  std::int64_t steps = 2;
  // Reductions run inline on the compute strand.
  bool run_inline = false;
  // Of the fabrics.
  std::size_t eager_bytes = 0, piece_bytes = 64;
  // Where checkpoints are, one after each step; empty: there are none.
  std::string checkpoint_dir;
  Oddity oddity = Oddity::kNone;
  int odd_node = 0;
  std::int64_t odd_at = 0;
  absl::Duration late;

  int nodes() const { return static_cast<int>(ranks.size()); }
};

struct NodeRun {
  // Of a node that is alive at the end.
  std::optional<absl::StatusOr<JobResult>> verdict;
  int verdicts = 0;  // how often it was said
  bool gone = false;
  bool trained = false;      // a rank there has made a step
  bool came = false;         // where it is the stranger
  bool was_running = false;  // it got as far as training
  bool disk_was_full = false;
};

struct ClusterRun {
  std::vector<NodeRun> nodes;  // behind those of the scenario, the stranger
  std::vector<bool> struck;    // by fault: it was reached
  // How many nodes were training when the first fault struck; -1: none did.
  int running_when_struck = -1;
  // Messages that had been sent when the last shard of a checkpoint was
  // reported by another node than 0; 0: none was.
  std::int64_t last_shard_at = 0;
  std::int64_t sent = 0;   // messages between nodes, frames among them
  std::int64_t steps = 0;  // of the simulation
  absl::Duration time;     // virtual, to the last verdict
  bool hurried = false;    // process 0 has not heard that all know the end
  int left = 0;            // actors that nobody has ended, where no node died
  std::uint64_t hash = 0;
};

ClusterRun SimulateCluster(const ClusterScenario& scenario, std::uint64_t seed);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_SIMULATED_CLUSTER_H_
