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
// Collectives are work of the rank's queue, after their `after`; several that
// start together (StartCoalesced) are one NCCL group, one kernel for small
// ones. UseDevice() enqueues the creation of the communicator, which waits for
// all ranks. Later work on the same queue waits for it: groups that share
// queues must be used in one order on all their ranks. A second UseDevice()
// moves a rank that has started nothing to another queue of its device.
//
// Bits: equal on all ranks, and reproducible with the same GPUs and NCCL; with
// three ranks and more they differ from those of reduction_tree.h. Each rank
// needs a GPU of its own: NCCL before 2.30 refuses two ranks on one.
//
// Not supported: reduce_update (devices update afterwards), bitwise operations,
// and messages: NCCL's have no tags, and no length of their own. kAvg rounds as
// NCCL does, each term before it is added.
//
// Ranks of one process that start different collectives fail at once. Ranks of
// several processes gather, before each collective, three words about the
// collective they start, and compare them on the host, which does not wait for
// it: a group that differs ends with an error that names both ranks and
// collectives, while NCCL still waits. Not compared: the parts of an
// all_to_all, and collectives that a graph replays.
//
// UseRanges() registers memory with NCCL (ncclCommRegister, from 2.19.1 on),
// which may then read and write it in place. Memory that it refuses is used
// unregistered.
//
// Errors. An asynchronous error of NCCL, a time-out, a failed `after` and
// Abort() end the group for all its ranks of this process: pending events
// complete with the status, kernels that wait for peers quit, and later calls
// return it. Ranks of other processes are aborted by the owner of the job, or
// by their time-out. When Abort() returns, NCCL has been requested to quit; it
// may access memory until the queue has advanced. A new group, of a later
// generation, may use the same queue.
//
// Lifetime: a rank that is destroyed with all work complete finalizes its
// communicator, for which it waits two seconds at most. Threads: UseDevice()
// and Start() in the device's thread, the rest any.

#ifndef COMM_NCCL_NCCL_GROUP_H_
#define COMM_NCCL_NCCL_GROUP_H_

#include "absl/status/statusor.h"
#include "comm/nccl/nccl_backend.h"
#include "comm/store.h"

namespace troupe::comm {

// Implements MakeNcclGroup(), with validated options.
absl::StatusOr<Group> OpenNcclGroup(const NcclGroupOptions& options,
                                    Store& store);

}  // namespace troupe::comm

#endif  // COMM_NCCL_NCCL_GROUP_H_
