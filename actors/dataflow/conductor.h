// The conductor of a dataflow, an actor in each process: it detects when the
// run has ended, with which result, and ends the local stages.
//
// Takes  DataflowContext    starts the run; earlier DataflowNews are kept
//        DataflowStageDone, DataflowFailure   from the local stages
//        DataflowNews       from the conductors of other processes; also from
//                           the fabric, about a lost process
// Gives  DataflowNews to the other conductors, by the fabric; exit to stages
// Fails  never by itself; the first failure that it receives is the run's
//
// If no handler returns for the time-out, in any process, the run fails with a
// message that says what each local stage does or waits for. A process leaves
// when all others have received the result, or are lost, or after the farewell
// time-out.

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
  // Ends the run with a failure. Only the first call counts.
  void Fail(const absl::Status& status);

 private:
  // The state of a process, from its DataflowNews.
  struct Peer {
    std::int64_t handled = 0;
    bool done = false;
    bool gone = false;  // whether it has sent kBye, or is lost
  };

  void FinishIfDone();
  // Sends kBye, and waits for that of the others before the outcome is set.
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
  std::vector<Peer> peers_;  // one for each process, this one included
  int stages_left_ = 0;
  std::vector<ChannelUse> uses_;  // indexed by channel
  // Number of handler calls when it last changed, and the time of that.
  std::int64_t handled_ = 0;
  caf::actor_clock::time_point changed_;
  std::optional<absl::Status> verdict_;
};

DataflowConductor::behavior_type DataflowConductorBehavior(
    DataflowConductorState::Self self, std::shared_ptr<const Dataflow> flow);

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_CONDUCTOR_H_
