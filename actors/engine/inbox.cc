#include "actors/engine/inbox.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "actors/engine/dispatcher.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

using pipeline::ActionKind;

absl::Status Inbox::BeginStep(Dispatcher& dispatcher) {
  for (const Transfer& transfer : std::exchange(early_, {})) {
    TROUPE_RETURN_IF_ERROR(Deliver(transfer, dispatcher));
  }
  return absl::OkStatus();
}

absl::StatusOr<nn::TensorList> Inbox::OnThisDevice(const Transfer& transfer) {
  nn::Kernels& kernels = parts_.kernels();
  // An evaluation sends no gradients back: its message is a bare credit.
  if (kernels.queues() == nullptr || transfer.tensors.empty()) {
    return transfer.tensors;
  }
  nn::Wait(kernels, nn::Queue::kCompute, transfer.ready);
  nn::TensorList here;
  for (const nn::Tensor& tensor : transfer.tensors) {
    here.emplace_back();
    if (!tensor.defined()) continue;
    TROUPE_ASSIGN_OR_RETURN(
        here.back(), nn::CopyToDevice(kernels, nn::Queue::kCompute, tensor));
  }
  // Keeps the other device's memory allocated until it is copied.
  nn::Record(kernels, nn::Queue::kCompute)
      .OnReady([kept = transfer.tensors](const absl::Status&) {});
  return here;
}

absl::Status Inbox::Deliver(const Transfer& transfer, Dispatcher& dispatcher) {
  StepInFlight& step = dispatcher.present();
  if (transfer.step != step.step || transfer.kind != step.kind ||
      !step.under_way) {
    early_.push_back(transfer);
    return absl::OkStatus();
  }
  const auto& chunks = parts_.chunks;
  const auto chunk =
      std::find_if(chunks.begin(), chunks.end(),
                   [&](const auto& c) { return c->stage() == transfer.stage; });
  const int m = transfer.micro_batch;
  const int receive =
      chunk == chunks.end()
          ? -1
          : step.index.Find(transfer.forward ? ActionKind::kRecvActivation
                                             : ActionKind::kRecvGradient,
                            m, static_cast<int>(chunk - chunks.begin()));
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", parts_.setup.rank, ", step ", step.step + 1, ": got ",
        transfer.forward ? "an activation" : "a gradient", " of micro-batch ",
        m, " for stage ", transfer.stage, why));
  };
  if (receive < 0) return refuse(", which its table does not receive");
  if (step.IsDone(receive)) return refuse(" a second time");
  const TraceScope scope(*step.trace, step.ActionAt(receive));
  TROUPE_ASSIGN_OR_RETURN(const nn::TensorList here, OnThisDevice(transfer));
  const absl::Status received = transfer.forward
                                    ? (*chunk)->ReceiveActivations(m, here)
                                    : (*chunk)->ReceiveGradients(m, here);
  if (!received.ok()) return refuse(absl::StrCat(": ", received.message()));
  dispatcher.Finish(step, receive);
  return absl::OkStatus();
}

}  // namespace troupe::actors
