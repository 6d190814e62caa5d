// Reports what the ranks of a local group wait for, and since when: for errors,
// and for the detection of ranks that wait for each other.
//
//   std::vector<Waiting> waits = WaitsOf(ring, messages, rank);
//   const std::string text = DescribeWait(ring, rank, seq);
//
// Threads: any.

#ifndef COMM_LOCAL_GROUP_WAITS_H_
#define COMM_LOCAL_GROUP_WAITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/local/messages.h"
#include "comm/local/operation_ring.h"

namespace troupe::comm::internal {

// Returns what a rank waits for: collectives in order, then messages.
std::vector<Waiting> WaitsOf(const OperationRing& ring,
                             const Messages& messages, int rank);
// Returns "all_reduce(sum, f32 x 4), collective 7 of the group: not started
// by ranks 1, 3; ...".
std::string DescribeWait(const OperationRing& ring, int rank,
                         std::uint64_t seq);

// Returns "rank 3" or "ranks 0, 3".
std::string RankText(const std::vector<int>& ranks);

}  // namespace troupe::comm::internal

#endif  // COMM_LOCAL_GROUP_WAITS_H_
