// The communicator of a rank in a group whose ranks live in several processes.
//
//   auto state = std::make_shared<SpanningState>(board, courier, number,
//                                                 options);
//   std::unique_ptr<Communicator> rank = MakeSpanningRank(state, /*rank=*/2);
//
// RunInline() drives the fabric's links itself, for the least latency.
// Progress() does a piece of any work of the process. docs/collectives.md,
// "Between processes", has steps and bytes on the wire.

#ifndef COMM_SPANNING_SPANNING_GROUP_H_
#define COMM_SPANNING_SPANNING_GROUP_H_

#include <memory>

#include "comm/communicator.h"
#include "comm/spanning/spanning_state.h"

namespace troupe::comm::internal {

// Makes the communicator of `rank`, which lives in this process.
std::unique_ptr<Communicator> MakeSpanningRank(
    std::shared_ptr<SpanningState> state, int rank);

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_SPANNING_GROUP_H_
