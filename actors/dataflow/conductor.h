// The conductor of a dataflow in one process: it knows when the run has ended,
// and how, and ends what is left of it.
//
// Takes  DataflowContext    the run begins; what came before is kept until then
//        DataflowStageDone, DataflowFailure   from the stages here
//        DataflowNews       from the conductors of other processes, and of a
//                           process that is lost
// Gives  DataflowNews to the other conductors, by the fabric; exit to stages
// Fails  never by itself; the first failure that it hears of is the run's
//
// No handler has returned for the time-out, in any process that it hears of:
// that is a failure too, with what each stage here does or waits for. A process
// leaves when all others have heard how the run ended, or are lost, or after
// the farewell time-out.

#ifndef ACTORS_DATAFLOW_CONDUCTOR_H_
#define ACTORS_DATAFLOW_CONDUCTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "actors/dataflow/dataflow_context.h"
#include "actors/dataflow/dataflow_messages.h"

namespace troupe::actors {

class DataflowConductorState {
 public:
  static inline const char* name = "dataflow conductor";
  using Self = DataflowConductor::stateful_pointer<DataflowConductorState>;

  void Init(Self self, std::shared_ptr<const Dataflow> flow) {
    self_ = self;
    flow_ = std::move(flow);
  }
  void OnContext(DataflowContextPtr context);
  void OnStageDone(const DataflowStageDone& message);
  void OnNews(const DataflowNews& news);
  void OnWatch();
  void OnFarewellTimeout();
  // The first call counts, and ends the run.
  void Fail(const absl::Status& status);

 private:
  // Another process, as far as it has told.
  struct Peer {
    std::int64_t handled = 0;
    bool done = false;
    bool gone = false;  // it has said bye, or is lost
  };

  void FinishIfDone();
  void Leave();
  void LeaveIfAllKnow();
  void TellPeers(DataflowNews::Kind kind, std::int64_t number = 0,
                 const std::string& text = "");
  std::int64_t Handled() const;
  std::string DescribeStages() const;
  DataflowReport Report() const;

  Self self_ = nullptr;
  std::shared_ptr<const Dataflow> flow_;
  DataflowContextPtr context_;
  std::vector<DataflowNews> early_;
  std::vector<Peer> peers_;  // by process; this one's own too
  int stages_left_ = 0;
  std::vector<ChannelUse> uses_;  // by channel
  std::int64_t handled_ = 0;      // at the last change
  caf::actor_clock::time_point changed_;
  std::optional<absl::Status> verdict_;
};

DataflowConductor::behavior_type DataflowConductorBehavior(
    DataflowConductorState::Self self, std::shared_ptr<const Dataflow> flow);

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_CONDUCTOR_H_
