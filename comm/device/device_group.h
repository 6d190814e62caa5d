// A group of ranks in one process whose ranges lie in the memory of devices:
// its collectives are work of these devices, in the order of their queues.
//
//   Group group = MakeDeviceGroup({/*size=*/2});
//   // In the thread of each rank's device:
//   group[rank]->UseDevice(&work);
//   TROUPE_ASSIGN_OR_RETURN(
//       Event done, group[rank]->Start(AllReduce(ReduceOp::kSum, gradients),
//                                      /*after=*/gradients_ready));
//
// The ranks meet on the host: Start() notes what a rank brings and returns. The
// last rank to come gives its own device the whole collective:
//
//     rank 0   Start(after 0)  ---.            done (follows D)
//     rank 1   Start(after 1)  ---+-> wait for after 0, after 1
//                                     reduce: reads both ranges, writes both
//                                     record D
//
// `done` is known as an event of that device from then on (base/event.h), so
// the other ranks' devices wait for it without the host. Until the last rank
// has come, what waits for `done` is held back by its host.
//
// The ranks' devices are one, or reach each other's memory. One of them does
// the work: on one device that is best; on several it moves (n - 1) ranges over
// the link of one, and is meant for a few.
//
// Bits: those of the local group (reduction_tree.h). All kinds of collectives
// but reduce_update; no messages. Progress() and SetWakeup() do nothing.
//
// Abort() completes what was not given to a device, and blocks until what was
// is done. Threads: as Communicator says; UseDevice() and Start() of a rank in
// the thread of its device.

#ifndef COMM_DEVICE_DEVICE_GROUP_H_
#define COMM_DEVICE_DEVICE_GROUP_H_

#include "comm/local/local_group.h"

namespace troupe::comm {

// `options.chunk_bytes` plays no part; `in_flight_max` is the number of
// collectives that a rank may be ahead of its peers.
Group MakeDeviceGroup(const LocalGroupOptions& options);

}  // namespace troupe::comm

#endif  // COMM_DEVICE_DEVICE_GROUP_H_
