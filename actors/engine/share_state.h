// Brings together between steps what the replicas of a stage, or the ranks
// along tp, have apart:
//
//     kShareBuffers   The first replica's buffers go to all, by broadcasts
//                     along dp, as PyTorch's DistributedDataParallel
//                     (broadcast_buffers) does at each forward. It does
//                     nothing for stages that need none
//                     (StagePlan::shares_buffers).
//     kGatherStates   So do they, and then the states of the optimizer, and
//                     values, of which each replica has slices
//                     (pipeline::PlanChoices::owners()) go to the first one,
//                     bucket by bucket. There the parameters and states of
//                     which each rank along tp has pieces
//                     (pipeline::Plan::SplitsParameters()) go to the first of
//                     those, whose next snapshot has them (snapshot.h). It does
//                     no more than the other if each rank has all.
//
//   const StepKind kind =
//       SharedForSnapshot(plan, rank, /*in_place=*/false).value();
//   TROUPE_RETURN_IF_ERROR(ShareState(parts, kind, step));
//
// A checkpoint that all owners write in place (SavePolicy::in_place) has the
// slices and pieces as they are, and gathers none.
//
// All ranks call it after step `step`: before an evaluation with kShareBuffers,
// and before a snapshot with SharedForSnapshot(). Replicas then evaluate with
// what the checkpoint holds, and a job that resumes from it goes on with the
// same buffers on every replica.
//
// Cost: the bytes of the buffers, in one collective for each of their dtypes;
// the first replica receives the states of the others, bucket by bucket, and
// the first rank along tp the pieces, tensor by tensor, in host memory that
// becomes that of its snapshot. A rank that is not the first along tp has one
// bucket of slices at a time, and gathers none of the copies.
// Errors: kResourceExhausted if there is no such memory, which names the state;
// those of LayerCollectives::Run().
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_SHARE_STATE_H_
#define ACTORS_ENGINE_SHARE_STATE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/engine_parts.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// `kind` is kShareBuffers or kGatherStates.
absl::Status ShareState(const EngineParts& parts, StepKind kind,
                        std::int64_t step);

// Returns what a rank's stages share before a snapshot, if anything: the ranks
// along tp of the first replica may do more than those of the others.
// `in_place`: whether each rank copies its own parts of tensors.
std::optional<StepKind> SharedForSnapshot(const pipeline::Plan& plan, int rank,
                                          bool in_place);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_SHARE_STATE_H_
