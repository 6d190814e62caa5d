// One process of a simulated cluster: does the work of
// actors/cluster/cluster_job.cc by messages instead of blocking calls.

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
#include "actors/supervision/spawn_crew.h"
#include "base/files/intercepted_file_system.h"
#include "comm/fabric.h"
#include "tests/actors/cluster/simulated_links.h"

namespace troupe::actors {

// The disk of a node. It fails once the node is gone, and may be full from one
// of its writes on.
class NodeFiles : public base::InterceptedFileSystem {
 public:
  // The disk is full from write `full_at` on; -1: never.
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

// The training set of a node, of which a read may fail.
class NodeData : public data::Dataset {
 public:
  // Read `bad_read` fails; -1: none does.
  NodeData(data::DatasetPtr good, int bad_read)
      : Dataset(good->size(), good->spec()),
        good_(std::move(good)),
        bad_read_(bad_read) {}

  bool was_bad() const { return bad_read_ >= 0 && reads_ > bad_read_; }

 private:
  absl::Status Gather(absl::Span<const std::int64_t> indices,
                      std::int64_t epoch, const nn::Tensor& inputs,
                      const nn::Tensor& targets) const override;

  const data::DatasetPtr good_;
  const int bad_read_;
  mutable int reads_ = 0;
};

struct SimulatedProcessOptions {
  int node = 0;
  ClusterOptions cluster;  // .process may be another number than the node's
  JobSpec spec;
  // Options of comm::FabricOptions.
  std::size_t eager_bytes = 0, piece_bytes = 64;
  std::string version = kTroupeVersion;
  bool broken = false;    // whether setting up its ranks fails
  absl::Duration slow;    // delay before it sets up its ranks
  int disk_full_at = -1;  // write at which its disk is full; -1: never
  int bad_read = -1;      // read of its training set that fails; -1: none
};

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
  SimulatedProcess(SimulatedWorld& world, SimulatedProcessOptions options);

  // Spawns the coordinator; called for node 0, before anything else.
  void SpawnCoordinator();
  void Start(absl::Duration later);
  void RequestStop();
  // Sends messages of an earlier attempt of the job.
  void SendStale();
  // Ends the actors that are left.
  void TearDown();

  const std::optional<absl::StatusOr<JobResult>>& verdict() const {
    return verdict_;
  }
  int verdicts() const { return verdicts_; }
  bool left() const { return left_; }
  // Whether a rank here has made a step, so that the job had begun.
  bool trained() const { return trained_; }
  bool has_joined() const { return stage_ > Stage::kJoining; }
  bool is_running() const { return stage_ == Stage::kRunning; }
  bool disk_was_full() const { return files_.was_full(); }
  bool data_was_bad() const { return train_->was_bad(); }
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
  // Stands for ClusterJob::Leave().
  void Leave();
  void CheckGone();
  void LetGoOfLinks();

  SimulatedWorld& world_;
  const SimulatedProcessOptions options_;
  TestHooks hooks_;
  PreemptionPoints points_;
  // Time for which the program runs on after Job::Wait() has returned.
  absl::Duration linger_;
  base::PosixFileSystem disk_;
  NodeFiles files_;
  const std::shared_ptr<NodeData> train_;
  caf::actor starter_;
  caf::event_based_actor* self_ = nullptr;
  CoordinatorActor coordinator_;  // this node's handle
  AgentActor agent_;
  JobSetup setup_;
  Welcome welcome_;
  std::set<std::string> keys_;  // keys that it waits for
  LocalCrew crew_;
  SupervisedCrew supervised_;
  Stage stage_ = Stage::kIdle;
  absl::Status start_;
  std::optional<absl::StatusOr<JobResult>> outcome_, verdict_;
  SupervisorActor supervisor_;  // handle of a process other than 0
  int verdicts_ = 0;
  bool left_ = false, hurried_ = false, trained_ = false;
};

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_CLUSTER_SIMULATED_PROCESS_H_
