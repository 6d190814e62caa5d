// Simulates a whole job of several processes in one thread, under a seed and a
// plan of faults. Coordinator, agents, supervisor, ranks and checkpoint writers
// are those of production; each belongs to a node of a simulated network
// (actors/sim/simulated_network.h). A stand-in for cluster_job.cc does the rest
// of a process's work, such as joining: it waits for messages instead of
// blocking. Collectives and the tensors between stages travel over simulated
// links (simulated_links.h). A fault of a node or a link strikes both the
// control plane and the data plane.
//
//   ClusterScenario scenario;
//   scenario.ranks = {1, 2};                  // two nodes
//   scenario.plan = *ParseFaultPlan("die 1 at 17 heard");
//   const ClusterRun run = SimulateCluster(scenario, /*seed=*/42);
//   run.nodes[0].verdict;                     // the result of Job::Wait()

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

// The peculiarity of one node (ClusterScenario::odd_node).
enum class Oddity {
  kNone,
  // It does not belong to the job: it has another configuration, version, or
  // number of processes, or comes with the number of the node before it.
  kOtherConfig,
  kOtherVersion,
  kOtherSize,
  kSameNumber,
  kLate,      // it begins `late` later
  kUnfit,     // it cannot prepare the job; node 0 then makes no decisions
  kNoRanks,   // it cannot make its ranks
  kSlow,      // it makes its ranks `late` later
  kFullDisk,  // its disk is full after odd_at writes
  // After odd_at messages, one more node joins with its number, although all
  // have joined.
  kStranger,
  kStop,     // a stop is requested there after odd_at messages
  kBadData,  // its training set fails at read odd_at
  kEnd,
};

// The ranks of a job, and what each of them has.
struct ClusterLayout {
  std::vector<int> ranks = {1, 1};  // number of ranks of each node
  int stages = 1;                   // pp; the ranks are divided among them
  // ZeRO stage, of a job of one stage of a pipeline: the optimizer has states,
  // of which each rank has and saves its slices.
  int zero_stage = 0;

  int nodes() const { return static_cast<int>(ranks.size()); }
};

struct ClusterScenario : ClusterLayout {
  FaultPlan plan;
  absl::Duration liveness_timeout = absl::Seconds(10);
  absl::Duration join_timeout = absl::Minutes(1);
  // Limit on the virtual time of a step of the simulation.
  absl::Duration message_time_max = absl::ZeroDuration();
  std::int64_t steps = 2;
  // Reductions run inline on the compute strand.
  bool run_inline = false;
  // Options of the fabrics.
  std::size_t eager_bytes = 0, piece_bytes = 64;
  // Folder of checkpoints, one after each step; empty: none are made.
  std::string checkpoint_dir;
  bool resume = false;  // whether the job goes on from the newest one there
  Oddity oddity = Oddity::kNone;
  int odd_node = 0;
  std::int64_t odd_at = 0;
  absl::Duration late;
};

struct NodeRun {
  // Result of the job; set for a node that is alive at the end.
  std::optional<absl::StatusOr<JobResult>> verdict;
  int verdicts = 0;  // number of times that it was reported
  // Virtual time of the first report, from the beginning of the run.
  absl::Duration verdict_after;
  bool gone = false;
  bool trained = false;      // whether a rank there has made a step
  bool came = false;         // false for a stranger that has not joined
  bool was_running = false;  // whether it got as far as training
  bool disk_was_full = false;
  bool data_was_bad = false;
};

struct ClusterRun {
  std::vector<NodeRun> nodes;  // the scenario's nodes, then the stranger
  std::vector<bool> struck;    // whether each fault has struck
  // Number of nodes that were training when the first fault struck; -1: no
  // fault did.
  int running_when_struck = -1;
  absl::Duration struck_after;  // virtual time until it did
  // Numbers of messages sent when nodes other than 0 reported a shard of a
  // checkpoint, or what they have of one.
  std::vector<std::int64_t> shards_at;
  std::int64_t sent = 0;   // number of messages between nodes, with frames
  std::int64_t steps = 0;  // number of steps of the simulation
  absl::Duration time;     // virtual time until the last verdict
  bool hurried = false;    // whether process 0 lacked a Farewell at its end
  int left = 0;            // actors that were not ended; 0 if a node died
  std::uint64_t hash = 0;
};

ClusterRun SimulateCluster(const ClusterScenario& scenario, std::uint64_t seed);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_SIMULATED_CLUSTER_H_
