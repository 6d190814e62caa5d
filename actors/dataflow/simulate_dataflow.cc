#include "actors/dataflow/simulate_dataflow.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/dataflow/conductor.h"
#include "actors/dataflow/dataflow_context.h"
#include "actors/sim/seeded_scheduler.h"
#include "base/check.h"
#include "comm/sim/sim_link.h"

namespace troupe::actors {
namespace {

struct SimulatedDataflowConfig : SimulatedConfig {
  SimulatedDataflowConfig() { AddDataflowMessageTypes(*this); }
};

// All processes of a run, in one actor system.
class SimulatedRunOfProcesses {
 public:
  SimulatedRunOfProcesses(const Dataflow& flow,
                          const DataflowSimulation& options)
      : options_(options),
        system_(config_),
        scheduler_(system_, {options.seed, absl::Milliseconds(1)}),
        network_(options.processes, options.seed) {
    const auto shared = std::make_shared<const Dataflow>(flow);
    for (int p = 0; p < options.processes; ++p) AddProcess(shared, p);
  }

  ~SimulatedRunOfProcesses() {
    for (std::size_t p = 0; p < contexts_.size(); ++p) {
      RefuseWords(*contexts_[p]);
      EndActors(*contexts_[p], conductors_[p]);
    }
    while (!scheduler_.idle()) scheduler_.Step();
    contexts_.clear();
  }

  std::vector<absl::StatusOr<DataflowReport>> Run() {
    std::int64_t events = 0;
    while (!AllHaveEnded() && events < options_.events_max && Step()) ++events;
    std::vector<absl::StatusOr<DataflowReport>> reports;
    for (const auto& context : contexts_) {
      reports.push_back(context->outcome->HasBeenSet()
                            ? context->outcome->Wait()
                            : absl::AbortedError(absl::StrCat(
                                  "no end after ", events, " events")));
    }
    return reports;
  }

 private:
  // Ends the actors that are left after a run without an end.
  static void EndActors(const DataflowContext& context,
                        const DataflowConductor& conductor) {
    for (const DataflowStageActor& stage : context.stages) {
      if (stage == nullptr) continue;
      caf::anon_send_exit(stage, caf::exit_reason::user_shutdown);
    }
    caf::anon_send_exit(conductor, caf::exit_reason::user_shutdown);
  }

  void AddProcess(const std::shared_ptr<const Dataflow>& flow, int process) {
    auto context = std::make_shared<DataflowContext>();
    context->flow = flow;
    context->process = process;
    context->timeout = options_.timeout;
    context->names.clear();
    for (int p = 0; p < options_.processes; ++p) {
      context->names.push_back(absl::StrCat("process ", p));
    }
    conductors_.push_back(system_.spawn(DataflowConductorBehavior, flow));
    if (options_.processes > 1) OpenFabric(conductors_.back(), *context);
    BeginDataflow(system_, context, conductors_.back());
    contexts_.push_back(std::move(context));
  }

  void OpenFabric(const DataflowConductor& conductor,
                  DataflowContext& context) {
    comm::FabricOptions options;
    options.process = context.process;
    options.names = context.names;
    for (int p = 0; p < options_.processes; ++p) {
      options.process_of.push_back(p);
    }
    options.links = network_.LinksOf(context.process);
    options.run_thread = false;
    options.abort_grace = absl::ZeroDuration();  // real time does not pass
    options.on_lost = LostListener(conductor);
    absl::StatusOr<std::unique_ptr<comm::Fabric>> fabric =
        comm::Fabric::Make(std::move(options));
    TROUPE_CHECK(fabric.ok(), "a fabric over simulated links can be made");
    context.fabric = *std::move(fabric);
  }

  bool AllHaveEnded() const {
    return std::all_of(
        contexts_.begin(), contexts_.end(),
        [](const auto& context) { return context->outcome->HasBeenSet(); });
  }

  // Processes one message of an actor, or one event of the network. Time
  // advances only if there is neither. Returns false if nothing is left to do.
  bool Step() {
    LoseIfDue();
    if (options_.processes == 1) return scheduler_.Step();
    const bool network_first = scheduler_.draws().Below(2) == 0;
    if (network_first && MoveNetwork()) return true;
    if (!scheduler_.idle()) return scheduler_.Step();
    return MoveNetwork() || scheduler_.Step();
  }

  bool MoveNetwork() {
    const int first =
        static_cast<int>(scheduler_.draws().Below(options_.processes));
    for (int i = 0; i < options_.processes; ++i) {
      const auto& context = contexts_[(first + i) % options_.processes];
      if (context->fabric->Progress()) return true;
    }
    return false;
  }

  void LoseIfDue() {
    if (lost_ || options_.lost_process < 0 ||
        network_.delivered() < options_.lost_after_frames) {
      return;
    }
    lost_ = true;
    network_.Lose(options_.lost_process);
  }

  const DataflowSimulation options_;
  SimulatedDataflowConfig config_;
  caf::actor_system system_;
  SeededScheduler scheduler_;
  comm::SimNetwork network_;
  // One context and conductor for each process.
  std::vector<std::shared_ptr<DataflowContext>> contexts_;
  std::vector<DataflowConductor> conductors_;
  bool lost_ = false;
};

}  // namespace

std::vector<absl::StatusOr<DataflowReport>> SimulateDataflow(
    const Dataflow& flow, const DataflowSimulation& options) {
  const auto all = [&](const absl::Status& status) {
    return std::vector<absl::StatusOr<DataflowReport>>(
        std::max(options.processes, 1), status);
  };
  if (options.processes < 1) {
    return all(absl::InvalidArgumentError(
        "DataflowSimulation.processes must be at least 1"));
  }
  if (absl::Status status = flow.Check(options.processes); !status.ok()) {
    return all(status);
  }
  return SimulatedRunOfProcesses(flow, options).Run();
}

}  // namespace troupe::actors
