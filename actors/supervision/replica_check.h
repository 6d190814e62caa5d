// Compares the replicas of a job by the hashes of their buckets
// (actors/engine/replica_hash.h), which they report at each checkpoint.
// Replicas add up the same gradients and have the same bits after each step, so
// a difference is an error of a device, of memory or of this program.
//
//   std::vector<std::vector<std::uint64_t>> hashes(plan.mesh.size());
//   absl::Status same = CheckReplicas(plan, /*step=*/100, hashes);
//
// Threads: any.

#ifndef ACTORS_SUPERVISION_REPLICA_CHECK_H_
#define ACTORS_SUPERVISION_REPLICA_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "pipeline/plan.h"

namespace troupe::actors {

// `hashes`: by rank, a hash for each bucket of its stages, in the order of its
// chunks.
//   kDataLoss: names the ranks that differ from most others of their replicas,
//   and the first bucket in which they do.
//   kInternal: a rank has another number of hashes.
absl::Status CheckReplicas(
    const pipeline::Plan& plan, std::int64_t step,
    const std::vector<std::vector<std::uint64_t>>& hashes);

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_REPLICA_CHECK_H_
