// One process of a simulated cluster: what actors/cluster/cluster_job.cc does,
// by messages instead of calls that wait.

#ifndef TESTS_ACTORS_CLUSTER_SIMULATED_PROCESS_H_
#define TESTS_ACTORS_CLUSTER_SIMULATED_PROCESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/cluster/agent.h"
#include "actors/cluster/coordinator.h"
#include "actors/setup/job_setup.h"
#include "actors/sim/preemption_points.h"
#include "actors/sim/simulated_network.h"
#include "actors/supervision/crew.h"
#include "base/intercepted_file_system.h"
#include "comm/fabric.h"
#include "tests/actors/cluster/simulated_links.h"

namespace troupe::actors {

// The disk of a node: gone with it, and full from one of its writes on.
class NodeFiles : public base::InterceptedFileSystem {
 public:
  // Full at write `full_at`; -1: never.
  NodeFiles(base::FileSystem& disk, std::function<bool()> is_gone, int full_at)
      : InterceptedFileSystem(disk, /*syncs=*/false),
        is_gone_(std::move(is_gone)),
        left_(full_at) {}

  bool was_full() const { return was_full_; }

 private:
  absl::Status BeforeChange(const char* verb, const std::string& path) override;
  absl::Status BeforeRead(const std::string&) override { return Check(); }
  absl::Status Check() const {
    if (!is_gone_()) return absl::OkStatus();
    return absl::UnavailableError("the node has no power");
  }

  const std::function<bool()> is_gone_;
  int left_;
  bool was_full_ = false;
};

struct SimulatedProcessOptions {
  int node = 0;
  ClusterOptions cluster;  // .process may be another number than the node's
  JobSpec spec;
  // Of frames, as in comm::FabricOptions.
  std::size_t eager_bytes = 0, piece_bytes = 64;
  std::string version = kTroupeVersion;
  bool broken = false;    // fails when it sets up its ranks
  absl::Duration slow;    // sets them up so much later
  int disk_full_at = -1;  // at this write of a checkpoint; -1: never
};

// What the processes of a simulation share.
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
  SimulatedProcess(SimulatedWorld& world, SimulatedProcessOptions options);

  // Of node 0: before anything else.
  void SpawnCoordinator();
  void Start(absl::Duration later);
  void RequestStop();
  // Messages of an earlier attempt of the job.
  void SendStale();
  // Ends what a node that is gone has left behind.
  void TearDown();

  const std::optional<absl::StatusOr<JobResult>>& verdict() const {
    return verdict_;
  }
  int verdicts() const { return verdicts_; }
  bool left() const { return left_; }
  // A rank here has made a step: the job had begun.
  bool trained() const { return trained_; }
  bool has_joined() const { return stage_ > Stage::kJoining; }
  bool is_running() const { return stage_ == Stage::kRunning; }
  bool disk_was_full() const { return files_.was_full(); }
  // Process 0 gave up waiting for the others' farewells.
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
  // Called once, by whatever actor knows how the job ended.
  void OnEnd(const absl::StatusOr<JobResult>& result);
  void OnOutcome();
  absl::StatusOr<JobResult> Verdict() const;
  absl::Status Prepare(const Decision* decision);
  void SetUpRanks();
  absl::Status MakeRanksHere();
  absl::Status InThisProcess(const absl::Status& status) const;
  // Reports a failure of this process to the job.
  void Report(const Failure& failure);
  void SpawnSupervisor();
  void Await(Stage stage, absl::Duration timeout);
  void Fail(const absl::Status& status);
  void Say(const absl::StatusOr<JobResult>& verdict);
  // ClusterJob::Leave().
  void Leave();
  void CheckGone();
  void LetGoOfLinks();

  SimulatedWorld& world_;
  const SimulatedProcessOptions options_;
  TestHooks hooks_;
  PreemptionPoints points_;
  // How long the program goes on when Job::Wait() has come back.
  absl::Duration linger_;
  base::PosixFileSystem disk_;
  NodeFiles files_;
  caf::actor starter_;
  caf::event_based_actor* self_ = nullptr;
  CoordinatorActor coordinator_;  // as this node sees it
  AgentActor agent_;
  JobSetup setup_;
  Welcome welcome_;
  std::set<std::string> keys_;  // awaited
  LocalCrew crew_;
  SupervisedCrew supervised_;
  Stage stage_ = Stage::kIdle;
  absl::Status start_;
  std::optional<absl::StatusOr<JobResult>> outcome_, verdict_;
  SupervisorActor supervisor_;  // as a process other than 0 sees it
  int verdicts_ = 0;
  bool left_ = false, hurried_ = false, trained_ = false;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_SIMULATED_PROCESS_H_
