// A group of ranks on devices that a group in memory of the host carries: for
// ranks of several processes whose sums are to have the tree's bits
// (reduction_tree.h), or whose devices share no library.
//
//   std::unique_ptr<Communicator> rank =
//       StageThroughHost(std::move(spanning_rank));
//   rank->UseDevice(&work);
//   TROUPE_ASSIGN_OR_RETURN(Event done, rank->Start(collective, after));
//
// What a rank gives is copied to pinned memory, behind `after`; the host's
// collective begins when it is there; what the rank gets is copied back:
//
//     queue   wait after | copy | record a |  wait c ...... | copy | record
//     host                       after a: all_reduce -> c
//
// So the queue stands while the host works, one collective after the other:
// groups that share queues are used in one order on all their ranks. It is for
// equal bits, not for speed.
//
// All kinds of collectives but reduce_update; messages are the host's own.
// Threads: as Communicator says, but Start() and Progress() may come from
// different ones.

#ifndef COMM_DEVICE_STAGED_GROUP_H_
#define COMM_DEVICE_STAGED_GROUP_H_

#include <memory>

#include "comm/communicator.h"

namespace troupe::comm {

std::unique_ptr<Communicator> StageThroughHost(
    std::unique_ptr<Communicator> host);

}  // namespace troupe::comm

#endif  // COMM_DEVICE_STAGED_GROUP_H_
