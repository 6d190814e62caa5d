// What StepRunner does with tensors that come from other stages, or go there.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "actors/step_runner.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

using pipeline::ActionKind;
using pipeline::SignalKind;

void StepRunner::Send(const pipeline::Action& action) {
  const TraceScope scope(trace_, action);
  Chunk& chunk = ChunkOf(action);
  const bool forward = action.kind == ActionKind::kSendActivation;
  host_->Send(chunk.stage() + (forward ? 1 : -1), forward, action.index,
              forward ? chunk.output(action.index)
                      : chunk.TakeInputGradient(action.index),
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
    position_.Await({action.kind == ActionKind::kRecvActivation, action.index,
                     ChunkOf(action).stage()});
    return;
  }
  position_.GoOn();
}

absl::StatusOr<nn::Tensor> StepRunner::Here(const Transfer& transfer) {
  // An evaluation's message back is a bare credit.
  if (kernels_->queues() == nullptr || !transfer.tensor.defined()) {
    return transfer.tensor;
  }
  nn::Wait(*kernels_, nn::Queue::kCompute, transfer.ready);
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor here,
      nn::CopyToDevice(*kernels_, nn::Queue::kCompute, transfer.tensor));
  // The other device may have the memory back when it is copied.
  nn::Record(*kernels_, nn::Queue::kCompute)
      .OnReady([kept = transfer.tensor](const absl::Status&) {});
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
  const bool again =
      receive >= 0 && cursor_->Given({SignalKind::kDone, receive});
  if (receive < 0 || again) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", setup_.rank, ", step ", step_ + 1, ": got ",
        transfer.forward ? "an activation" : "a gradient", " of micro-batch ",
        m, " for stage ", transfer.stage,
        again ? " a second time" : ", which its table does not receive"));
  }
  const TraceScope scope(trace_, ActionOf(receive));
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor here, Here(transfer));
  transfer.forward ? (*chunk)->ReceiveActivation(m, here)
                   : (*chunk)->ReceiveGradient(m, here);
  cursor_->Finish(receive);
  return absl::OkStatus();
}

}  // namespace troupe::actors
