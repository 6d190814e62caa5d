// A group of ranks on GPUs, of one process or several, that reduces by NCCL.
//
//   NcclGroupOptions options;
//   options.name = "replicas";
//   options.ranks = {0, 1};
//   options.local = {0, 1};
//   TROUPE_ASSIGN_OR_RETURN(Group group, OpenNcclGroup(options, store));
//   // In the thread of each rank's device:
//   group[rank]->UseDevice(&work);
//   TROUPE_ASSIGN_OR_RETURN(
//       Event done, group[rank]->Start(AllReduce(ReduceOp::kSum, gradients),
//                                      /*after=*/gradients_ready));
//
// Collectives are work of the rank's queue, behind their `after`; several that
// start together (StartCoalesced) are one NCCL group, one kernel for small
// ones. UseDevice() gives the queue the making of the communicator, for which
// all ranks must come. What shares a queue with it comes after it: groups that
// share queues must be used in one order on all their ranks.
//
// Bits: equal on all ranks, and the same again for the same GPUs and NCCL; of
// three ranks and more not those of reduction_tree.h. A GPU each: NCCL before
// 2.30 refuses two ranks on one.
//
// Not there: reduce_update (devices update afterwards), kAvg and operations on
// bits, and messages: NCCL's have no tags, and no length of their own.
//
// Ranks of one process that start different collectives are told so at once.
// Those of several gather, before each collective, three words of what they are
// to start, and compare them on the host, which does not wait for it: a group
// that differs ends with an error that names both ranks and collectives, while
// NCCL still waits. Parts of an all_to_all are not compared, nor is what a
// graph replays.
//
// UseRanges() registers memory with NCCL (ncclCommRegister, from 2.19.1 on),
// which may then read and write it in place. Memory that it refuses is used
// all the same.
//
// Errors. An asynchronous error of NCCL's, a time-out, a failed `after` and
// Abort() end the group for all its ranks of this process: pending events
// complete with the status, kernels that wait for peers quit, and later calls
// return it. Ranks of other processes are told by who runs the job, or end by
// their time-out. When Abort() returns NCCL has been told to quit; memory may
// be touched until the queue has gone on. A new group, of a later generation,
// may use the same queue.
//
// Lifetime: a rank that goes with all done ends its communicator in good order,
// for which it waits two seconds at most. Threads: UseDevice() and Start() in
// the device's thread, the rest in any.

#ifndef COMM_NCCL_NCCL_GROUP_H_
#define COMM_NCCL_NCCL_GROUP_H_

#include "absl/status/statusor.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/store.h"

namespace troupe::comm {

// MakeNcclGroup() of this build, with options that fit.
absl::StatusOr<Group> OpenNcclGroup(const NcclGroupOptions& options,
                                    Store& store);

}  // namespace troupe::comm

#endif  // COMM_NCCL_NCCL_GROUP_H_
