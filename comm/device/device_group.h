// A group of ranks in one process whose ranges lie in device memory: its
// collectives run as work of these devices, in the order of their queues.
//
//   Group group = MakeDeviceGroup({/*size=*/2});
//   // In the thread of each rank's device:
//   group[rank]->UseDevice(&work);
//   TROUPE_ASSIGN_OR_RETURN(
//       Event done, group[rank]->Start(AllReduce(ReduceOp::kSum, gradients),
//                                      /*after=*/gradients_ready));
//
// The ranks synchronize on the host: Start() records a rank's arguments and
// returns. The last rank to start enqueues the whole collective on its own
// device:
//
//     rank 0   Start(after 0)  ---.            done (follows D)
//     rank 1   Start(after 1)  ---+-> wait for after 0, after 1
//                                     reduce: reads both ranges, writes both
//                                     record D
//
// From then on `done` has an event of that device as its origin (base/event.h),
// so the other ranks' devices wait for it without the host. Before the last
// rank has started, the host defers work that waits for `done`.
//
// The ranks share one device, or their devices can access each other's memory.
// One device does all the work: that is best on one device; on several it moves
// (n - 1) ranges over one device's link, and is meant for a few devices.
//
// Bits: those of the local group (reduction_tree.h). It supports all kinds of
// collectives but reduce_update. Messages are handed over, by a local group
// (Communicator::HandsOver()): the receiver's device copies them. Progress()
// and SetWakeup() do nothing.
//
// Abort() completes collectives that no device has been given, and blocks until
// those on devices have run. Threads: as for Communicator; UseDevice() and
// Start() of a rank are called in the thread of its device.

#ifndef COMM_DEVICE_DEVICE_GROUP_H_
#define COMM_DEVICE_DEVICE_GROUP_H_

#include "comm/local/local_group.h"

namespace troupe::comm {

// Makes a group. `options.chunk_bytes` is ignored; `in_flight_max` is the
// number of collectives that a rank may be ahead of its peers.
Group MakeDeviceGroup(const LocalGroupOptions& options);

}  // namespace troupe::comm

#endif  // COMM_DEVICE_DEVICE_GROUP_H_
