// A group of ranks in one process: collectives in shared memory, no sockets.
//
//   std::vector<std::unique_ptr<Communicator>> group = MakeLocalGroup({2});
//   // In the thread of each rank:
//   group[rank]->RunInline(AllReduce(ReduceOp::kSum, gradients),
//                          absl::Seconds(10));
//
// A collective runs once all ranks have started it: its range is cut into
// chunks. A thread that drives any rank claims a chunk, reads it from all
// ranks' ranges, computes the tree of additions (reduction_tree.h) and writes
// the result to all of them. So a group advances as long as one rank is driven,
// and its bits depend neither on the number of driven ranks nor on the order of
// the steps. docs/collectives.md has the steps and the memory traffic.
//
// A message is copied once, as a whole, from the sender's memory to the
// receiver's, in the call (or the completion of `after`) that makes it
// possible: neither rank needs to be driven for it.
//
// Lifetime: the ranks may be destroyed in any order. Destroying one that peers
// need for a collective or a message that they have started aborts the group
// (kUnavailable); so does starting one that needs a destroyed rank. A receive
// from any source needs at least one other rank.
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
  // Number of ranks, 1 to kLocalGroupSizeMax.
  int size = 1;
  // Size of the part of each range that one Progress() reduces. Small ranges
  // are cut finer, so that all ranks get some of the work.
  std::size_t chunk_bytes = std::size_t{32} << 10;
  // Limit on the collectives that one rank may have in flight; a power of two,
  // at most kLocalGroupInFlightMax.
  int in_flight_max = 256;
  // Whether messages are handed over (Communicator::HandsOver()), in place of
  // being copied.
  bool hands_over = false;
};

inline constexpr int kLocalGroupSizeMax = 256;
inline constexpr int kLocalGroupInFlightMax = 65536;

// One communicator for each rank, in order.
using Group = std::vector<std::unique_ptr<Communicator>>;

// Makes a group; CHECK-fails on options outside these limits.
Group MakeLocalGroup(const LocalGroupOptions& options);

// Function that makes groups: MakeLocalGroup, or one that wraps its ranks.
using GroupFactory = std::function<Group(const LocalGroupOptions& options)>;

}  // namespace troupe::comm

#endif  // COMM_LOCAL_LOCAL_GROUP_H_
