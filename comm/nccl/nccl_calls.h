// Maps a collective to calls of NCCL. One that NCCL lacks is a group of sends
// and receives of its blocks (comm/flow.h), and a copy of the one that a rank
// sends to itself.
//
//   TROUPE_RETURN_IF_ERROR(CheckNccl(collective, rank));
//   NcclTarget target = {comm, rank, size, stream, scratch};
//   ncclResult_t result = CallNccl(collectives, target);
//
// kSum, kAvg, kMin, kMax and kProduct are NCCL's own. Its average multiplies
// each term by 1/n, in the dtype, before it adds; jobs use sums, and fold the
// divisor into the update. kMin and kMax treat NaN as NCCL does.
//
// Threads: that of the communicator's device.

#ifndef COMM_NCCL_NCCL_CALLS_H_
#define COMM_NCCL_NCCL_CALLS_H_

#include <nccl.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "comm/communicator.h"

namespace troupe::comm::internal {

struct NcclTarget {
  ncclComm_t comm = nullptr;
  int rank = 0;
  int size = 1;
  cudaStream_t stream = nullptr;
  // Device memory of one int, for barriers.
  void* scratch = nullptr;
};

// Checks whether NCCL can run `collective`, which has passed CheckOnDevice().
//   kUnimplemented: NCCL lacks the op.
//   kFailedPrecondition: rank `rank` sends itself another count than it
//     expects.
absl::Status CheckNccl(const Collective& collective, int rank);

// Returns the name of such work in a queue, as a literal: "ncclAllReduce".
const char* NcclCallName(CollectiveKind kind);

// Enqueues all as one NCCL group. ncclInProgress: the work may not be on the
// stream yet.
ncclResult_t CallNccl(absl::Span<const Collective> collectives,
                      const NcclTarget& target);

// Returns kUnavailable if a peer or the network is lost, kInternal for any
// other failure. `what` names the operation.
absl::Status NcclStatus(ncclResult_t result, ncclComm_t comm,
                        absl::string_view what);

}  // namespace troupe::comm::internal

#endif  // COMM_NCCL_NCCL_CALLS_H_
