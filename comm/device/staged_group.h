// A group of ranks on devices whose collectives run in a group in host memory:
// for ranks of several processes whose sums must have the tree's bits
// (reduction_tree.h), or whose devices have no library in common.
//
//   std::unique_ptr<Communicator> rank =
//       StageThroughHost(std::move(spanning_rank));
//   rank->UseDevice(&work);
//   TROUPE_ASSIGN_OR_RETURN(Event done, rank->Start(collective, after));
//
// A rank's input is copied to pinned memory, after `after`; the host's
// collective begins when the copy is complete; its output is copied back:
//
//     queue   wait after | copy | record a |  wait c ...... | copy | record
//     host                       after a: all_reduce -> c
//
// The queue idles while the host works, one collective after the other: groups
// that share queues must be used in one order on all their ranks. Use it for
// equal bits, not for speed.
//
// It supports all kinds of collectives but reduce_update; messages are the host
// group's own. Threads: as for Communicator, but Start() and Progress() may be
// called from different threads.

#ifndef COMM_DEVICE_STAGED_GROUP_H_
#define COMM_DEVICE_STAGED_GROUP_H_

#include <memory>

#include "comm/communicator.h"

namespace troupe::comm {

std::unique_ptr<Communicator> StageThroughHost(
    std::unique_ptr<Communicator> host);

}  // namespace troupe::comm

#endif  // COMM_DEVICE_STAGED_GROUP_H_
