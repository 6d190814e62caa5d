// A group of ranks in one process: collectives in shared memory, no sockets.
//
//   std::vector<std::unique_ptr<Communicator>> group = MakeLocalGroup({2});
//   // In the thread of each rank:
//   group[rank]->RunInline(AllReduce(ReduceOp::kSum, gradients),
//                          absl::Seconds(10));
//
// A collective runs once all ranks have started it: its range is cut into
// chunks, a thread that drives any rank claims a chunk, reads it from all
// ranks' ranges, computes the tree of additions (reduction_tree.h) and writes
// the result to all of them. So a group advances as long as one rank is driven,
// and its bits depend neither on how many are nor on the order of the steps.
// docs/collectives.md has the steps and the memory traffic.
//
// A message is copied once, from the sender's memory to the receiver's, whole,
// in the call (or the completion of `after`) that makes it possible: nobody
// needs to drive either rank for it.
//
// Lifetime: the ranks may go in any order. One that goes while peers need it
// for a collective or a message that they have started aborts the group
// (kUnavailable), as does starting one that needs a rank that is gone. A
// receive from any rank needs one that is there.
//
// Cost: two threads on two cores take 0.3-1.0 us for an all_reduce of
// up to 4 KB with RunInline(), which allocates nothing (a first reduce_update:
// its scratch chunk); tools/bench/comm measures it. Start() allocates an Event.

#ifndef COMM_LOCAL_LOCAL_GROUP_H_
#define COMM_LOCAL_LOCAL_GROUP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace troupe::comm {

struct LocalGroupOptions {
  // Ranks, 1 to kLocalGroupSizeMax.
  int size = 1;
  // What one Progress() reduces of each range. Small ranges are cut finer, so
  // that all ranks have some of the work.
  std::size_t chunk_bytes = std::size_t{32} << 10;
  // Collectives that one rank may have in flight; a power of two, at most
  // kLocalGroupInFlightMax.
  int in_flight_max = 256;
};

inline constexpr int kLocalGroupSizeMax = 256;
inline constexpr int kLocalGroupInFlightMax = 65536;

// One communicator for each rank, in order.
using Group = std::vector<std::unique_ptr<Communicator>>;

// CHECK-fails on options outside these limits.
Group MakeLocalGroup(const LocalGroupOptions& options);

// Whatever makes groups: MakeLocalGroup, or a function that wraps its ranks.
using GroupFactory = std::function<Group(const LocalGroupOptions& options)>;

}  // namespace troupe::comm

#endif  // COMM_LOCAL_LOCAL_GROUP_H_
