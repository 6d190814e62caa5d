// A stage of a dataflow as an actor: a strand that runs its handlers.
//
// Takes  DataflowRoutes   first: the actors that it sends messages to
//        DataflowTensor, DataflowEnd   from the writers of its inputs
//        DataflowCredit   from the readers of its outputs
// Gives  the same to its neighbours; DataflowStageDone to the conductor
// Fails  with the status of a handler, as DataflowFailure to the conductor

#ifndef ACTORS_DATAFLOW_STAGE_ACTOR_H_
#define ACTORS_DATAFLOW_STAGE_ACTOR_H_

#include <memory>

#include "actors/dataflow/dataflow_context.h"
#include "actors/dataflow/dataflow_messages.h"
#include "actors/dataflow/stage_run.h"

namespace troupe::actors {

class DataflowStageState : public StageRun::Host {
 public:
  static inline const char* name = "dataflow stage";
  using Self = DataflowStageActor::stateful_pointer<DataflowStageState>;

  void Init(Self self, std::shared_ptr<StageRun> run) {
    self_ = self;
    run_ = std::move(run);
  }
  void OnRoutes(DataflowRoutesPtr routes);
  void OnTensor(const DataflowTensor& message);
  void OnEnd(const DataflowEnd& message);
  void OnCredit(const DataflowCredit& message);
  void OnResume();
  void Fail(const absl::Status& status);

  // StageRun::Host:
  absl::Status Send(int channel, std::int64_t number,
                    nn::Tensor tensor) override;
  void ReturnCredit(int channel) override;
  void End(int channel, std::int64_t count) override;

 private:
  // Runs one handler, then sends a message to itself for the next, so that
  // messages that arrive meanwhile are processed in between.
  void GoOn();
  template <typename Message>
  void Tell(int stage, Message message) {
    self_->send(routes_->context().stages[stage], std::move(message));
  }
  comm::Fabric& fabric() { return *routes_->context().fabric; }

  Self self_ = nullptr;
  std::shared_ptr<StageRun> run_;
  DataflowRoutesPtr routes_;
  bool going_on_ = false;  // whether a message to itself is pending
};

DataflowStageActor::behavior_type DataflowStageBehavior(
    DataflowStageState::Self self, std::shared_ptr<StageRun> run);

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_STAGE_ACTOR_H_
