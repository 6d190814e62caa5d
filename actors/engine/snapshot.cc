#include "actors/engine/snapshot.h"

#include <memory>
#include <optional>
#include <utility>

#include "actors/engine/replica_hash.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::actors {

namespace {

// Returns scalars whose step is the number of updates after `step` steps,
// written by kReadBack.
absl::StatusOr<nn::Tensor> UpdatesAfter(std::int64_t step,
                                        const LossScaler* scaler,
                                        nn::Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor scalars,
      nn::Tensor::Create({nn::kNumStepScalars}, nn::DType::kF64,
                         kernels.allocator()));
  nn::StepScalars values;
  values.step = static_cast<double>(step);
  {
    const nn::QueueScope scope(kernels, nn::Queue::kReadBack);
    TROUPE_RETURN_IF_ERROR(kernels.SetStepScalars(values, scalars));
  }
  if (scaler != nullptr) TROUPE_RETURN_IF_ERROR(scaler->CountUpdates(scalars));
  return scalars;
}

absl::Status CopyAll(const EngineParts& parts, const LossScaler* scaler,
                     bool in_place, Snapshot& snapshot) {
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor updates,
                          UpdatesAfter(snapshot.step, scaler, parts.kernels()));
  for (const auto& chunk : parts.chunks) {
    TROUPE_RETURN_IF_ERROR(
        chunk->parameters().CopyInto(updates, in_place, snapshot.tensors));
  }
  const EngineSetup& setup = parts.setup;
  if (scaler != nullptr && setup.plan->StagesOf(setup.rank)[0] == 0) {
    TROUPE_RETURN_IF_ERROR(scaler->CopyInto(snapshot.tensors));
    // The first of the ranks that write together saves it.
    const pipeline::Mesh& mesh = setup.plan->mesh;
    if (in_place && (mesh.CoordOf(setup.rank, pipeline::kDpAxis) > 0 ||
                     mesh.CoordOf(setup.rank, pipeline::kTpAxis) > 0)) {
      snapshot.tensors.optimizer.back().Drop();
    }
  }
  return absl::OkStatus();
}

// Returns whether the run goes on with the checkpoint's state of the scaler.
bool RestoresScaler(const Checkpoint& checkpoint, const EngineParts& parts,
                    const LossScaler* scaler) {
  if (scaler == nullptr) return false;
  if (!scaler->is_dynamic()) return true;
  return !parts.setup.spec->checkpoint.allow_missing ||
         checkpoint.FindOptimizer(kLossScalerState) != nullptr;
}

}  // namespace

absl::StatusOr<PendingSnapshot> SnapshotOf(const EngineParts& parts,
                                           const LossScaler* scaler,
                                           std::int64_t step,
                                           const SnapshotParts& made) {
  const EngineSetup& setup = parts.setup;
  nn::Kernels& kernels = parts.kernels();
  parts.events.AwaitAllUpdates();
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->step = step;
  snapshot->rank = setup.rank;
  nn::Wait(kernels, nn::Queue::kReadBack,
           nn::Record(kernels, nn::Queue::kCompute));
  if (made.copies) {
    TROUPE_RETURN_IF_ERROR(CopyAll(parts, scaler, made.in_place, *snapshot));
  }
  base::Event ready = nn::Record(kernels, nn::Queue::kReadBack);
  // The next step writes to the tensors that are copied. Its updates, in
  // whichever queue, follow work of its own in the compute queue.
  nn::Wait(kernels, nn::Queue::kCompute, ready);
  return PendingSnapshot{
      std::move(snapshot), std::move(ready),
      made.hashes ? std::make_shared<ReplicaHash>(parts) : nullptr};
}

absl::Status AdvanceHash(PendingSnapshot& pending) {
  if (pending.hash == nullptr) return absl::OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const std::optional<base::Event> copied,
                          pending.hash->Advance());
  if (copied) {
    pending.ready = *copied;
  } else {
    pending.snapshot->hashes = pending.hash->buckets();
    pending.hash = nullptr;
  }
  return absl::OkStatus();
}

absl::Status RestoreFrom(const Checkpoint& checkpoint, const EngineParts& parts,
                         LossScaler* scaler) {
  parts.events.AwaitAllUpdates();
  const bool scales_on = RestoresScaler(checkpoint, parts, scaler);
  auto updates = static_cast<double>(checkpoint.state().step);
  if (scales_on) {
    TROUPE_ASSIGN_OR_RETURN(const double skipped, SkippedSteps(checkpoint));
    updates -= skipped;
  }
  for (const auto& chunk : parts.chunks) {
    TROUPE_RETURN_IF_ERROR(chunk->parameters().Restore(checkpoint, updates));
  }
  return scales_on ? scaler->Restore(checkpoint) : absl::OkStatus();
}

}  // namespace troupe::actors
