#include "actors/dataflow/run_dataflow.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "actors/caf/strand_scheduler.h"
#include "actors/caf/thread_supply.h"
#include "actors/cluster/rendezvous.h"
#include "actors/dataflow/conductor.h"
#include "actors/dataflow/dataflow_context.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

// Number of threads besides those of stages: for the conductor, and the clock.
constexpr int kThreadsShared = 2;

struct DataflowConfig : caf::actor_system_config {
  explicit DataflowConfig(ThreadSupply& threads) {
    AddDataflowMessageTypes(*this);
    RunOnThreads(threads, *this);
  }
};

int StagesHere(const Dataflow& flow, int process) {
  int count = 0;
  for (const StageSpec& stage : flow.stages())
    count += stage.process == process;
  return count;
}

// Returns the text by which processes compare their descriptions.
std::string Agreement(const Dataflow& flow) {
  std::string text;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(flow.ToString(), '\n')) {
    absl::StrAppend(&text, "line ", ++number, " of the dataflow = ", line,
                    "\n");
  }
  return text;
}

// Connects to the other processes. `conductor` is notified of lost ones.
absl::Status OpenFabric(const ClusterOptions& options,
                        const DataflowConductor& conductor,
                        DataflowContext& context) {
  TROUPE_ASSIGN_OR_RETURN(MetProcesses met,
                          MeetProcesses(options, Agreement(*context.flow)));
  comm::FabricOptions fabric;
  fabric.process = options.process;
  fabric.generation = met.generation;
  fabric.links = std::move(met.links);
  for (int p = 0; p < options.processes; ++p) {
    fabric.process_of.push_back(p);
    fabric.names.push_back(absl::StrCat("process ", p, " (",
                                        met.roster.member(p).host, ", pid ",
                                        met.roster.member(p).pid, ")"));
  }
  context.names = fabric.names;
  fabric.on_lost = LostListener(conductor);
  TROUPE_ASSIGN_OR_RETURN(context.fabric,
                          comm::Fabric::Make(std::move(fabric)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DataflowReport> RunDataflow(const Dataflow& flow,
                                           const DataflowOptions& options) {
  const int processes = options.cluster ? options.cluster->processes : 1;
  const int process = options.cluster ? options.cluster->process : 0;
  TROUPE_RETURN_IF_ERROR(flow.Check(processes));
  if (options.timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "DataflowOptions.timeout must be above zero");
  }
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<ThreadSupply> threads,
      StartActorThreads(StagesHere(flow, process) + kThreadsShared));
  DataflowConfig config(*threads);
  caf::actor_system system(config);
  // Declared after the system, since actor handles must be released before it.
  auto context = std::make_shared<DataflowContext>();
  context->flow = std::make_shared<const Dataflow>(flow);
  context->process = process;
  context->timeout = options.timeout;
  DataflowConductor conductor =
      system.spawn(DataflowConductorBehavior, context->flow);
  if (options.cluster && processes > 1) {
    const absl::Status met = OpenFabric(*options.cluster, conductor, *context);
    if (!met.ok()) {
      caf::anon_send_exit(conductor, caf::exit_reason::user_shutdown);
      return met;
    }
  }
  BeginDataflow(system, context, conductor);
  conductor = nullptr;
  absl::StatusOr<DataflowReport> report = context->outcome->Wait();
  RefuseWords(*context);
  return report;
}

}  // namespace troupe::actors
