#include "actors/engine/snapshot.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

absl::StatusOr<PendingSnapshot> SnapshotOf(const EngineParts& parts,
                                           const LossScaler* scaler,
                                           std::int64_t step) {
  const EngineSetup& setup = parts.setup;
  nn::Kernels& kernels = parts.kernels();
  parts.events.AwaitAllUpdates();
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->step = step;
  snapshot->rank = setup.rank;
  nn::Wait(kernels, nn::Queue::kReadBack,
           nn::Record(kernels, nn::Queue::kCompute));
  for (const auto& chunk : parts.chunks) {
    TROUPE_RETURN_IF_ERROR(chunk->parameters().CopyInto(snapshot->tensors));
  }
  if (scaler != nullptr && setup.plan->StagesOf(setup.rank)[0] == 0) {
    TROUPE_RETURN_IF_ERROR(scaler->CopyInto(snapshot->tensors));
  }
  base::Event ready = nn::Record(kernels, nn::Queue::kReadBack);
  // The next step writes to the tensors that are copied. Its updates, in
  // whichever queue, follow work of its own in the compute queue.
  nn::Wait(kernels, nn::Queue::kCompute, ready);
  return PendingSnapshot{std::move(snapshot), std::move(ready)};
}

absl::Status RestoreFrom(const Checkpoint& checkpoint, const EngineParts& parts,
                         LossScaler* scaler) {
  parts.events.AwaitAllUpdates();
  for (const auto& chunk : parts.chunks) {
    TROUPE_RETURN_IF_ERROR(chunk->parameters().Restore(checkpoint));
  }
  const bool begins_anew =
      scaler == nullptr ||
      (parts.setup.spec->checkpoint.allow_missing &&
       checkpoint.FindOptimizer(kLossScalerState) == nullptr);
  return begins_anew ? absl::OkStatus() : scaler->Restore(checkpoint);
}

}  // namespace troupe::actors
