// What StepRunner does for checkpoints.

#include <memory>
#include <utility>

#include "actors/engine/step_runner.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

// Its state is the same on all ranks: that of the first stage saves it.
bool StepRunner::SavesLossScaler() const {
  return scaler_ != nullptr && setup_.plan->StagesOf(setup_.rank)[0] == 0;
}

absl::StatusOr<PendingSnapshot> StepRunner::MakeSnapshot(std::int64_t step) {
  TROUPE_CHECK(!tail_ || !tail_->active(), "a snapshot is of whole steps");
  events_->AwaitAllUpdates();
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->step = step;
  snapshot->rank = setup_.rank;
  nn::Wait(*kernels_, nn::Queue::kReadBack,
           nn::Record(*kernels_, nn::Queue::kCompute));
  for (const auto& chunk : chunks_) {
    TROUPE_RETURN_IF_ERROR(chunk->CopyInto(snapshot->tensors));
  }
  if (SavesLossScaler()) {
    TROUPE_RETURN_IF_ERROR(scaler_->CopyInto(snapshot->tensors));
  }
  base::Event ready = nn::Record(*kernels_, nn::Queue::kReadBack);
  // The next step writes to what is copied; its updates are behind its work.
  nn::Wait(*kernels_, nn::Queue::kCompute, ready);
  return PendingSnapshot{std::move(snapshot), std::move(ready)};
}

absl::Status StepRunner::Restore(const Checkpoint& checkpoint) {
  events_->AwaitAllUpdates();
  for (const auto& chunk : chunks_) {
    TROUPE_RETURN_IF_ERROR(chunk->Restore(checkpoint));
  }
  const bool begins_anew =
      scaler_ == nullptr ||
      (setup_.spec->checkpoint.allow_missing &&
       checkpoint.FindOptimizer(kLossScalerState) == nullptr);
  return begins_anew ? absl::OkStatus() : scaler_->Restore(checkpoint);
}

}  // namespace troupe::actors
