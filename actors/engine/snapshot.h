// Copies a rank's parameters and optimizer states for a checkpoint, and
// restores them from one.
//
//   TROUPE_ASSIGN_OR_RETURN(PendingSnapshot snapshot,
//                           SnapshotOf(parts, scaler, step, /*made=*/{}));
//   // Once snapshot.ready has completed, the tensors may be written.
//   TROUPE_RETURN_IF_ERROR(RestoreFrom(checkpoint, parts, scaler));
//
// Both are called between steps, while none is under way.
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_SNAPSHOT_H_
#define ACTORS_ENGINE_SNAPSHOT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/loss_scaler.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/engine_parts.h"

namespace troupe::actors {

// Returns a copy of the state after `step` steps of the run, or hashes of it,
// as `made` says. `scaler` is null if no step may be skipped; its state is the
// same on all ranks, and those of the first stage save it.
//   kResourceExhausted: there is no memory for the copy; names the tensor.
absl::StatusOr<PendingSnapshot> SnapshotOf(const EngineParts& parts,
                                           const LossScaler* scaler,
                                           std::int64_t step,
                                           const SnapshotParts& made);
// Goes on with the hashes of a snapshot whose `ready` has completed. It either
// sets them in the snapshot, and `hash` to null, or gives it another `ready`.
// On a device without queues one call does all.
absl::Status AdvanceHash(PendingSnapshot& pending);
// Errors: those of Checkpoint::ReadModel(), which name the tensor that is
// missing or of another shape.
absl::Status RestoreFrom(const Checkpoint& checkpoint, const EngineParts& parts,
                         LossScaler* scaler);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_SNAPSHOT_H_
