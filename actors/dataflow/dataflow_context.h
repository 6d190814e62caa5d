// The data that the actors of a dataflow in one process share: the description,
// the local stages, the fabric to other processes, and the outcome.
//
//   auto context = std::make_shared<DataflowContext>();
//   context->flow = std::make_shared<const Dataflow>(flow);
//   BeginDataflow(system, context, conductor);
//   absl::StatusOr<DataflowReport> report = context->outcome->Wait();
//
// Threads: constant from the first message on, except for the outcome.

#ifndef ACTORS_DATAFLOW_DATAFLOW_CONTEXT_H_
#define ACTORS_DATAFLOW_DATAFLOW_CONTEXT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "actors/dataflow/dataflow_messages.h"
#include "actors/dataflow/dataflow_report.h"
#include "actors/dataflow/stage_run.h"
#include "comm/fabric.h"

namespace troupe::actors {

// The future of the run's result. The conductor sets it once.
class DataflowOutcome {
 public:
  void Set(absl::StatusOr<DataflowReport> result) {
    result_ = std::move(result);
    done_.Notify();
  }
  bool HasBeenSet() const { return done_.HasBeenNotified(); }
  absl::StatusOr<DataflowReport> Wait() const {
    done_.WaitForNotification();
    return result_;
  }

 private:
  absl::StatusOr<DataflowReport> result_ =
      absl::UnknownError("the dataflow has not ended");
  absl::Notification done_;
};

struct DataflowContext {
  std::shared_ptr<const Dataflow> flow;
  int process = 0;
  // Names of all processes for messages: "process 1 (host b, pid 4711)".
  std::vector<std::string> names = {"process 0"};
  // Null if there is only one process.
  std::shared_ptr<comm::Fabric> fabric;
  // Time after which the run fails if no handler returns.
  absl::Duration timeout;
  // Limit on the time that a process waits at the end until the others have
  // received the result.
  absl::Duration farewell_timeout = absl::Seconds(2);
  // Indexed by stage; null for stages of other processes.
  std::vector<std::shared_ptr<StageRun>> runs;
  // Indexed by stage; null for stages of other processes.
  std::vector<DataflowStageActor> stages;
  std::shared_ptr<DataflowOutcome> outcome =
      std::make_shared<DataflowOutcome>();

  int processes() const { return static_cast<int>(names.size()); }
  bool IsHere(int stage) const {
    return flow->stages()[stage].process == process;
  }
};

// The actors that a stage sends messages to.
class DataflowRoutes {
 public:
  DataflowRoutes(DataflowContextPtr context, DataflowConductor conductor);

  const DataflowContext& context() const { return *context_; }
  const DataflowConductor& conductor() const { return conductor_; }
  // Return the stage that reads a channel, and the one that writes it.
  int reader(int channel) const { return readers_[channel]; }
  int writer(int channel) const { return writers_[channel]; }

 private:
  const DataflowContextPtr context_;
  const DataflowConductor conductor_;
  std::vector<int> readers_, writers_;  // indexed by channel
};

// Spawns the stages of this process, sets `runs` and `stages` of `context`, and
// sends it to `conductor`, which starts the run. The other fields of `context`
// must be set.
void BeginDataflow(caf::actor_system& system,
                   const std::shared_ptr<DataflowContext>& context,
                   const DataflowConductor& conductor);

// Returns a function for FabricOptions::on_lost that notifies the conductor.
std::function<void(int process, const absl::Status& why)> LostListener(
    const DataflowConductor& conductor);

// Removes the fabric's handlers, which send to actors of `context`.
void RefuseWords(const DataflowContext& context);

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_DATAFLOW_CONTEXT_H_
