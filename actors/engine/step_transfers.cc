// What StepRunner does with tensors that come from other stages, or go there,
// and with those that a prediction gives.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/engine/step_runner.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/action_rules.h"

namespace troupe::actors {

using pipeline::ActionKind;
using pipeline::SignalKind;

void StepRunner::Send(const pipeline::Action& action) {
  const TraceScope scope(trace_, action);
  Chunk& chunk = ChunkOf(action);
  const bool forward = pipeline::IsOfForward(action.kind);
  host_->Send(chunk.stage() + (forward ? 1 : -1), forward, action.index,
              forward ? chunk.TakeOutputs(action.index)
                      : chunk.TakeInputGradients(action.index),
              nn::Record(*kernels_, nn::Queue::kCompute));
}

// Receives come in the order of the table: the first that is missing is the
// one that holds up the rest.
void StepRunner::NoteWait() {
  const std::vector<pipeline::Action>& actions = cursor_->table().actions;
  for (int id = 0; id < static_cast<int>(actions.size()); ++id) {
    const pipeline::Action& action = actions[id];
    if (!pipeline::IsReceive(action.kind) ||
        cursor_->Given({SignalKind::kDone, id})) {
      continue;
    }
    position_.Await({pipeline::IsOfForward(action.kind), action.index,
                     ChunkOf(action).stage()});
    return;
  }
  position_.GoOn();
}

absl::Status StepRunner::KeepOutput(const nn::Tensor& output) {
  if (kernels_->queues() == nullptr) {
    outputs_.push_back(output);
    return absl::OkStatus();
  }
  // The step's losses are read behind it, by the same queue: they are there no
  // sooner.
  nn::Wait(*kernels_, nn::Queue::kReadBack,
           nn::Record(*kernels_, nn::Queue::kCompute));
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor host, nn::CopyToHost(*kernels_, nn::Queue::kReadBack, output));
  nn::Record(*kernels_, nn::Queue::kReadBack)
      .OnReady([kept = output](const absl::Status&) {});
  outputs_.push_back(std::move(host));
  return absl::OkStatus();
}

nn::Tensor StepRunner::TakeOutput() {
  TROUPE_CHECK(!outputs_.empty(), "a prediction that has ended has an output");
  nn::Tensor output = std::move(outputs_.front());
  outputs_.pop_front();
  return output;
}

absl::StatusOr<nn::TensorList> StepRunner::Here(const Transfer& transfer) {
  // An evaluation's message back is a bare credit.
  if (kernels_->queues() == nullptr || transfer.tensors.empty()) {
    return transfer.tensors;
  }
  nn::Wait(*kernels_, nn::Queue::kCompute, transfer.ready);
  nn::TensorList here;
  for (const nn::Tensor& tensor : transfer.tensors) {
    here.emplace_back();
    if (!tensor.defined()) continue;
    TROUPE_ASSIGN_OR_RETURN(
        here.back(), nn::CopyToDevice(*kernels_, nn::Queue::kCompute, tensor));
  }
  // The other device may have the memory back when it is copied.
  nn::Record(*kernels_, nn::Queue::kCompute)
      .OnReady([kept = transfer.tensors](const absl::Status&) {});
  return here;
}

absl::Status StepRunner::Deliver(const Transfer& transfer) {
  if (transfer.step != step_ || transfer.kind != kind_ || cursor_->complete()) {
    early_.push_back(transfer);
    return absl::OkStatus();
  }
  const auto chunk =
      std::find_if(chunks_.begin(), chunks_.end(),
                   [&](const auto& c) { return c->stage() == transfer.stage; });
  const int m = transfer.micro_batch;
  const int receive =
      chunk == chunks_.end()
          ? -1
          : table_->index.Find(transfer.forward ? ActionKind::kRecvActivation
                                                : ActionKind::kRecvGradient,
                               m, static_cast<int>(chunk - chunks_.begin()));
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", setup_.rank, ", step ", step_ + 1, ": got ",
        transfer.forward ? "an activation" : "a gradient", " of micro-batch ",
        m, " for stage ", transfer.stage, why));
  };
  if (receive < 0) return refuse(", which its table does not receive");
  if (cursor_->Given({SignalKind::kDone, receive})) {
    return refuse(" a second time");
  }
  const TraceScope scope(trace_, ActionOf(receive));
  TROUPE_ASSIGN_OR_RETURN(const nn::TensorList here, Here(transfer));
  const absl::Status received = transfer.forward
                                    ? (*chunk)->ReceiveActivations(m, here)
                                    : (*chunk)->ReceiveGradients(m, here);
  if (!received.ok()) return refuse(absl::StrCat(": ", received.message()));
  cursor_->Finish(receive);
  return absl::OkStatus();
}

}  // namespace troupe::actors
