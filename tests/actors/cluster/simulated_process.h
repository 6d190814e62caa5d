// One process of a simulated cluster: does the work of
// actors/cluster/cluster_job.cc by messages instead of blocking calls.

#ifndef TESTS_ACTORS_CLUSTER_SIMULATED_PROCESS_H_
#define TESTS_ACTORS_CLUSTER_SIMULATED_PROCESS_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/coordinator.h"
#include "actors/sim/seeded_scheduler.h"
#include "actors/sim/simulated_network.h"
#include "actors/supervision/crew.h"
#include "actors/supervision/spawn_crew.h"
#include "base/files/intercepted_file_system.h"
#include "comm/fabric.h"
#include "tests/actors/cluster/node_job.h"
#include "tests/actors/cluster/process_actors.h"
#include "tests/actors/cluster/simulated_links.h"
#include "tests/actors/cluster/wait_result.h"

namespace troupe::actors {

// The objects that the processes of a simulation share.
struct SimulatedWorld {
  caf::actor_system& system;
  SeededScheduler& scheduler;
  SimulatedNetwork& network;
  SimulatedLinks& links;
  CoordinatorActor coordinator;
  CoordinatorState::Gone gone;
};

class SimulatedProcess {
 public:
  SimulatedProcess(SimulatedWorld& world, NodeOptions options);

  // Spawns the coordinator; called for node 0, before anything else.
  void SpawnCoordinator();
  void Start(absl::Duration later);
  void RequestStop();
  // Sends messages of an earlier attempt of the job.
  void SendStale();
  // Ends the actors that are left.
  void TearDown();

  // Returns the result of Job::Wait(); none: it has not returned.
  const std::optional<absl::StatusOr<JobResult>>& verdict() const {
    return result_.returned();
  }
  // Returns the number of times that the job's end was reported.
  int verdicts() const { return result_.outcomes(); }
  bool left() const { return left_; }
  const NodeJob& job() const { return job_; }
  bool has_joined() const { return stage_ > Stage::kJoining; }
  bool is_running() const { return stage_ == Stage::kRunning; }
  // Whether process 0 gave up waiting for the others' Farewell.
  bool hurried() const { return hurried_; }

 private:
  enum class Stage {
    kIdle,
    kJoining,
    kKeys,
    kRanks,
    kSupervisor,
    kRunning,
    kFailed,
  };

  bool decides() const { return options_.cluster.process == 0; }
  caf::behavior Behavior(caf::event_based_actor* self);
  void OnStart();
  void OnWelcome(const Welcome& welcome);
  void OnKeyValue(const KeyValue& value);
  void OnSupervisorIs(const SupervisorIs& is);
  void OnRefused(const absl::Status& status);
  void OnDeadline(int stage);
  // Called with the job's result: by the agent, or in process 0 when the
  // outcome is set.
  void OnEnd(const absl::StatusOr<JobResult>& result);
  void OnOutcome();
  void SetUpRanks();
  absl::Status InThisProcess(const absl::Status& status) const;
  // Reports a failure of this process to the job.
  void Report(const Failure& failure);
  void SpawnSupervisor();
  void Await(Stage stage, absl::Duration timeout);
  void Fail(const absl::Status& status);
  // Stands for ClusterJob::Leave().
  void Leave();
  void CheckGone();

  SimulatedWorld& world_;
  const NodeOptions options_;
  NodeJob job_;
  ProcessActors actors_;
  WaitResult result_;
  // Time for which the program runs on after Job::Wait() has returned.
  absl::Duration linger_;
  caf::actor starter_;
  caf::event_based_actor* self_ = nullptr;
  CoordinatorActor coordinator_;  // this node's handle
  AgentActor agent_;              // null in process 0
  Welcome welcome_;
  std::set<std::string> keys_;  // keys that it waits for
  Stage stage_ = Stage::kIdle;
  bool left_ = false, hurried_ = false;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_SIMULATED_PROCESS_H_
