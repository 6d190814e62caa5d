#include "tests/actors/cluster/simulated_cluster.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/actors/cluster/simulated_process.h"
#include "tests/actors/sim/small_job.h"

namespace troupe::actors {
namespace {

// Limits on the steps and the virtual time of a simulation: one that exceeds
// them has failed to end.
constexpr std::int64_t kStepsMax = 2'000'000;
constexpr absl::Duration kTimeMax = absl::Minutes(30);
// Number of micro-batches of a replica in each step of a pipeline.
constexpr int kMicroBatches = 2;

struct ClusterConfig : SimulatedConfig {
  ClusterConfig() { AddClusterMessageTypes(*this); }
};

void MapActors(caf::message& message,
               const std::function<void(caf::strong_actor_ptr&)>& map) {
  if (message.match_elements<Join>()) {
    map(message.get_mutable_as<Join>(0).agent);
  } else if (message.match_elements<SupervisorIs>()) {
    map(message.get_mutable_as<SupervisorIs>(0).supervisor);
  } else if (message.match_elements<CrewReady>()) {
    auto& crew = message.get_mutable_as<CrewReady>(0);
    for (caf::strong_actor_ptr& rank : crew.ranks) map(rank);
    map(crew.checkpointer);
  }
}

// The small job on a mesh of `stages` stages.
JobSpec SpecOf(const ClusterScenario& scenario) {
  SmallJobOptions options;
  options.ranks = 0;
  for (const int ranks : scenario.ranks) options.ranks += ranks;
  options.steps = scenario.steps;
  options.fused = scenario.run_inline;
  if (scenario.zero_stage > 0) options.momentum = 0.9;
  JobSpec spec = SmallJob(options);
  spec.checkpoint.dir = scenario.checkpoint_dir;
  spec.checkpoint.every = 1;
  spec.checkpoint.resume = scenario.resume;
  spec.plan.zero_stage = scenario.zero_stage;
  if (scenario.stages == 1) return spec;
  const int replicas = options.ranks / scenario.stages;
  spec.plan.mesh = pipeline::Mesh(replicas, scenario.stages);
  if (scenario.stages == 2) {
    spec.plan.cuts = {2};
  } else {
    spec.plan.cuts = {2, 4};
  }
  spec.plan.micro_batch_size =
      static_cast<int>(kSmallJobBatch / replicas / kMicroBatches);
  return spec;
}

NodeOptions OptionsOf(const ClusterScenario& scenario, int node) {
  // The stranger is as the node whose number it takes.
  const int number = node < scenario.nodes() ? node : scenario.odd_node;
  const auto is = [&](Oddity oddity) {
    return scenario.oddity == oddity && node == scenario.odd_node;
  };
  NodeOptions options;
  options.node = node;
  options.eager_bytes = scenario.eager_bytes;
  options.piece_bytes = scenario.piece_bytes;
  ClusterOptions& cluster = options.cluster;
  cluster.process = is(Oddity::kSameNumber) ? number - 1 : number;
  cluster.processes = scenario.nodes() + is(Oddity::kOtherSize);
  cluster.ranks = scenario.ranks[number];
  cluster.liveness_timeout = scenario.liveness_timeout;
  cluster.join_timeout = scenario.join_timeout;
  cluster.agreement =
      is(Oddity::kOtherConfig) ? "train.lr = 0.2\n" : "train.lr = 0.1\n";
  if (is(Oddity::kOtherVersion)) options.version = "another";
  options.spec = SpecOf(scenario);
  if (is(Oddity::kUnfit)) options.spec.loss_scale = 0;
  options.broken = is(Oddity::kNoRanks);
  if (is(Oddity::kSlow)) options.slow = scenario.late;
  if (is(Oddity::kFullDisk)) {
    options.disk_full_at = static_cast<int>(scenario.odd_at);
  }
  if (is(Oddity::kBadData)) {
    options.bad_read = static_cast<int>(scenario.odd_at);
  }
  return options;
}

class Cluster {
 public:
  Cluster(const ClusterScenario& scenario, std::uint64_t seed)
      : scenario_(scenario),
        system_(config_),
        scheduler_(system_, {seed, scenario.message_time_max}),
        network_(system_, scheduler_, NetworkOptions()),
        links_(system_, scheduler_, network_, Nodes(), seed),
        world_{system_, scheduler_, network_, links_, {}, {}} {}

  ClusterRun Run() {
    start_ = scheduler_.now();
    for (int node = 0; node < Nodes(); ++node) {
      processes_.push_back(std::make_unique<SimulatedProcess>(
          world_, OptionsOf(scenario_, node)));
      if (node == 0) processes_[0]->SpawnCoordinator();
    }
    for (int node = 0; node < scenario_.nodes(); ++node) {
      const bool late =
          scenario_.oddity == Oddity::kLate && node == scenario_.odd_node;
      processes_[node]->Start(late ? scenario_.late : absl::ZeroDuration());
    }
    while (!AllHaveLeft() && run_.steps < kStepsMax && Elapsed() < kTimeMax) {
      if (!was_odd_ && IsTimeToBeOdd()) BeOdd();
      if (!Step()) break;
    }
    run_.time = Elapsed();
    Finish();
    return run_;
  }

 private:
  // Returns the number of nodes, the stranger included.
  int Nodes() const {
    return scenario_.nodes() + (scenario_.oddity == Oddity::kStranger);
  }

  SimulatedNetworkOptions NetworkOptions() {
    SimulatedNetworkOptions options;
    options.nodes = Nodes();
    options.plan = scenario_.plan;
    options.map_actors = MapActors;
    options.on_fault = [this](const Fault& fault, bool over) {
      OnFault(fault, over);
    };
    options.on_message = [this](int, const caf::type_erased_tuple& message) {
      if (message.match_elements<ShardSaved>()) {
        run_.shards_at.push_back(network_.sent() + 1);
      }
    };
    return options;
  }

  void OnFault(const Fault& fault, bool over) {
    links_.OnFault(fault, over);
    if (fault.kind == FaultKind::kStale) processes_[fault.node]->SendStale();
    if (run_.running_when_struck >= 0) return;
    run_.running_when_struck = 0;
    run_.struck_after = Elapsed();
    for (const auto& process : processes_) {
      run_.running_when_struck += process->is_running();
    }
  }

  // Whether the odd event is due. A stranger joins a job that has begun.
  bool IsTimeToBeOdd() const {
    if (network_.sent() < scenario_.odd_at) return false;
    return scenario_.oddity != Oddity::kStranger ||
           std::any_of(
               processes_.begin(), processes_.end(),
               [](const auto& process) { return process->has_joined(); });
  }

  void BeOdd() {
    was_odd_ = true;
    if (scenario_.oddity == Oddity::kStop) {
      processes_[scenario_.odd_node]->RequestStop();
    } else if (scenario_.oddity == Oddity::kStranger) {
      processes_.back()->Start(absl::ZeroDuration());
    }
  }

  absl::Duration Elapsed() const {
    return absl::FromChrono(scheduler_.now() - start_);
  }

  bool Step() {
    ++run_.steps;
    const bool more = scheduler_.Step();
    links_.Wake();
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (processes_[i]->verdicts() > 0) verdict_after_.emplace(i, Elapsed());
    }
    return more;
  }

  bool HasCome(int node) const { return node < scenario_.nodes() || was_odd_; }

  bool AllHaveLeft() const {
    for (std::size_t node = 0; node < processes_.size(); ++node) {
      if (HasCome(static_cast<int>(node)) && !processes_[node]->left() &&
          !network_.is_gone(static_cast<int>(node))) {
        return false;
      }
    }
    return true;
  }

  void Finish() {
    bool any_gone = false;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      NodeRun node;
      node.gone = network_.is_gone(static_cast<int>(i));
      node.verdict = processes_[i]->verdict();
      node.verdicts = processes_[i]->verdicts();
      const auto after = verdict_after_.find(i);
      if (after != verdict_after_.end()) node.verdict_after = after->second;
      node.trained = processes_[i]->job().trained();
      node.came = HasCome(static_cast<int>(i));
      node.was_running = processes_[i]->is_running();
      node.disk_was_full = processes_[i]->job().disk_was_full();
      node.data_was_bad = processes_[i]->job().data_was_bad();
      any_gone = any_gone || node.gone;
      run_.nodes.push_back(std::move(node));
    }
    for (const Fault& fault : scenario_.plan.faults) {
      run_.struck.push_back(network_.HasStruck(fault));
    }
    run_.sent = network_.sent();
    run_.hurried = processes_[0]->hurried();
    run_.hash = scheduler_.hash();
    // Actors that were ended must end without a timer.
    while (!any_gone && !scheduler_.idle() && run_.steps < kStepsMax) Step();
    if (!any_gone) run_.left = static_cast<int>(system_.registry().running());
    network_.Thaw();
    links_.Thaw();
    // There are two rounds, since a handler that was stopped may have spawned
    // more actors.
    for (int round = 0; round < 2; ++round) {
      for (const auto& process : processes_) process->TearDown();
      while (!scheduler_.idle()) Step();
    }
  }

  const ClusterScenario scenario_;
  ClusterConfig config_;
  caf::actor_system system_;
  SeededScheduler scheduler_;
  SimulatedNetwork network_;
  SimulatedLinks links_;
  SimulatedWorld world_;
  std::vector<std::unique_ptr<SimulatedProcess>> processes_;
  ClusterRun run_;
  std::chrono::steady_clock::time_point start_;
  // Virtual time of the first verdict, by node.
  std::map<std::size_t, absl::Duration> verdict_after_;
  bool was_odd_ = false;  // whether the odd event has happened
};

}  // namespace

ClusterRun SimulateCluster(const ClusterScenario& scenario,
                           std::uint64_t seed) {
  return Cluster(scenario, seed).Run();
}

}  // namespace troupe::actors
