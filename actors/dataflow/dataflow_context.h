// What the actors of a dataflow in one process share: the description, the
// stages that live here, the way to other processes, and the outcome.
//
//   auto context = std::make_shared<DataflowContext>();
//   context->flow = std::make_shared<const Dataflow>(flow);
//   BeginDataflow(system, context, conductor);
//   absl::StatusOr<DataflowReport> report = context->outcome->Wait();
//
// Constant from the first message on, but for the outcome.

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

// How the run ended. Set once, by the conductor.
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
  // "process 1 (host b, pid 4711)", by process; one where there are no others.
  std::vector<std::string> names = {"process 0"};
  // Null where there are no others.
  std::shared_ptr<comm::Fabric> fabric;
  // How long no handler may return before the run has failed.
  absl::Duration timeout;
  // How long a process waits for the others to have heard of the end.
  absl::Duration farewell_timeout = absl::Seconds(2);
  // By stage; null where it lives elsewhere.
  std::vector<std::shared_ptr<StageRun>> runs;
  // By stage; of those that live here.
  std::vector<DataflowStageActor> stages;
  std::shared_ptr<DataflowOutcome> outcome =
      std::make_shared<DataflowOutcome>();

  int processes() const { return static_cast<int>(names.size()); }
  bool IsHere(int stage) const {
    return flow->stages()[stage].process == process;
  }
};

// Whom a stage talks to.
class DataflowRoutes {
 public:
  DataflowRoutes(DataflowContextPtr context, DataflowConductor conductor);

  const DataflowContext& context() const { return *context_; }
  const DataflowConductor& conductor() const { return conductor_; }
  // The stages at the ends of a channel.
  int reader(int channel) const { return readers_[channel]; }
  int writer(int channel) const { return writers_[channel]; }

 private:
  const DataflowContextPtr context_;
  const DataflowConductor conductor_;
  std::vector<int> readers_, writers_;  // by channel
};

// Spawns the stages that live here, and sets the conductor going, which waits
// for its context. `context` has everything but its stages, which are filled
// in.
void BeginDataflow(caf::actor_system& system,
                   const std::shared_ptr<DataflowContext>& context,
                   const DataflowConductor& conductor);

// For FabricOptions::on_lost: tells the conductor.
std::function<void(int process, const absl::Status& why)> LostListener(
    const DataflowConductor& conductor);

// The fabric takes no more words for actors of `context`.
void RefuseWords(const DataflowContext& context);

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_DATAFLOW_CONTEXT_H_
