// Compares what the ranks of a group have started as one collective: kind,
// root, dtype, count, and, for a reduce_update, the replicas.
//
//   if (absl::Status differs = CheckAgreement(context, *op); !differs.ok()) {
//     return differs;
//   }
//
// docs/collectives.md describes the error. Threads: under the group's lock.

#ifndef COMM_SPANNING_AGREEMENT_H_
#define COMM_SPANNING_AGREEMENT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "comm/spanning/group_context.h"
#include "comm/spanning/operation/operation.h"

namespace troupe::comm::internal {

// Returns kFailedPrecondition, with two ranks that have started different
// collectives, among those that have joined `op` or announced it.
absl::Status CheckAgreement(const GroupContext& context, const Operation& op);

// Returns the properties of a reduce_update that are equal on all ranks: the
// number of replicas, and the dtypes of the first 14. 0 for other collectives.
std::uint64_t PackReplicas(const Collective& collective);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_AGREEMENT_H_
