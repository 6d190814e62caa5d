// Gives all replicas the first one's buffers, by broadcasts along dp, as
// PyTorch's DistributedDataParallel (broadcast_buffers) does at each forward.
//
//   TROUPE_RETURN_IF_ERROR(ShareBuffers(parts, step));
//
// All ranks call it between steps, before an evaluation and before a snapshot
// after step `step`: replicas then evaluate with what the checkpoint holds, and
// a job that resumes from it goes on with the same buffers on every replica.
// It does nothing for stages that do not need it (StagePlan::shares_buffers).
//
// Cost: the bytes of the buffers, in one collective for each of their dtypes.
// Errors: those of LayerCollectives::Run().
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_SHARE_BUFFERS_H_
#define ACTORS_ENGINE_SHARE_BUFFERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "actors/engine/engine_parts.h"

namespace troupe::actors {

absl::Status ShareBuffers(const EngineParts& parts, std::int64_t step);

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_SHARE_BUFFERS_H_
