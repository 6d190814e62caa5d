#include "actors/dataflow/stage_actor.h"

#include <utility>

#include "actors/caf/status_error.h"
#include "actors/dataflow/channel_wire.h"
#include "base/exception_text.h"

namespace troupe::actors {

void DataflowStageState::OnRoutes(DataflowRoutesPtr routes) {
  routes_ = std::move(routes);
  if (const absl::Status status = run_->Begin(this); !status.ok()) {
    Fail(status);
    return;
  }
  GoOn();
}

void DataflowStageState::OnTensor(const DataflowTensor& message) {
  const absl::Status status =
      run_->OnTensor(message.channel, message.number, message.tensor);
  status.ok() ? GoOn() : Fail(status);
}

void DataflowStageState::OnEnd(const DataflowEnd& message) {
  const absl::Status status = run_->OnEnd(message.channel, message.count);
  status.ok() ? GoOn() : Fail(status);
}

void DataflowStageState::OnCredit(const DataflowCredit& message) {
  run_->OnCredit(message.channel);
  GoOn();
}

void DataflowStageState::OnResume() {
  going_on_ = false;
  GoOn();
}

void DataflowStageState::GoOn() {
  // Neighbours may send messages before this stage has its routes.
  if (going_on_ || routes_ == nullptr) return;
  const absl::StatusOr<bool> ran = run_->RunNext();
  if (!ran.ok()) {
    Fail(ran.status());
  } else if (*ran) {
    going_on_ = true;
    self_->send(self_, resume_atom::value);
  } else if (run_->done()) {
    self_->send(routes_->conductor(),
                DataflowStageDone{run_->stage(), run_->uses()});
    self_->quit();
  }
}

void DataflowStageState::Fail(const absl::Status& status) {
  self_->send(
      routes_->conductor(),
      DataflowFailure{status.raw_code(), std::string(status.message())});
  self_->quit(ToError(status));
}

absl::Status DataflowStageState::Send(int channel, std::int64_t number,
                                      nn::Tensor tensor) {
  const int reader = routes_->reader(channel);
  const DataflowContext& context = routes_->context();
  if (context.IsHere(reader)) {
    Tell(reader, DataflowTensor{channel, number, std::move(tensor)});
    return absl::OkStatus();
  }
  return SendWord(fabric(), context.flow->stages()[reader].process,
                  WireChannel(channel), {WireWord::Kind::kTensor, number},
                  tensor);
}

void DataflowStageState::ReturnCredit(int channel) {
  const int writer = routes_->writer(channel);
  const DataflowContext& context = routes_->context();
  if (context.IsHere(writer)) {
    Tell(writer, DataflowCredit{channel});
    return;
  }
  SendWord(fabric(), context.flow->stages()[writer].process,
           WireChannel(channel), {WireWord::Kind::kCredit}, nn::Tensor())
      .IgnoreError();
}

void DataflowStageState::End(int channel, std::int64_t count) {
  const int reader = routes_->reader(channel);
  const DataflowContext& context = routes_->context();
  if (context.IsHere(reader)) {
    Tell(reader, DataflowEnd{channel, count});
    return;
  }
  SendWord(fabric(), context.flow->stages()[reader].process,
           WireChannel(channel), {WireWord::Kind::kEnd, count}, nn::Tensor())
      .IgnoreError();
}

DataflowStageActor::behavior_type DataflowStageBehavior(
    DataflowStageState::Self self, std::shared_ptr<StageRun> run) {
  self->state.Init(self, std::move(run));
  // Handles exceptions of When() conditions; StageRun catches those of
  // handlers.
  self->set_exception_handler(
      [self](caf::scheduled_actor*, std::exception_ptr& what) -> caf::error {
        self->state.Fail(absl::InternalError(base::ExceptionText(what)));
        return caf::exit_reason::unhandled_exception;
      });
  return {
      [=](const DataflowRoutesPtr& routes) { self->state.OnRoutes(routes); },
      [=](const DataflowTensor& message) { self->state.OnTensor(message); },
      [=](const DataflowEnd& message) { self->state.OnEnd(message); },
      [=](const DataflowCredit& message) { self->state.OnCredit(message); },
      [=](resume_atom) { self->state.OnResume(); },
  };
}

}  // namespace troupe::actors
