// What the machine gives at most, by the plainest means: contestants of
// workers.h.
//
//   RunMemcpy(/*ranks=*/2);    // until the standard input ends
//
// Bytes are counted so that a figure is the least time that an all-reduce of as
// many bytes could take: each rank's range is read once and written once; on a
// wire, each rank sends and receives 2 (n - 1) / n of it.

#ifndef TOOLS_BENCH_COLLECTIVES_BASELINES_H_
#define TOOLS_BENCH_COLLECTIVES_BASELINES_H_

#include "absl/status/status.h"

namespace troupe::bench {

// `ranks` threads copy a range each, at the same time.
void RunMemcpy(int ranks);

// `ranks` threads, each connected to the next one by TCP on loopback, send to
// it and receive from the one before, at the same time.
absl::Status RunSockets(int ranks);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_COLLECTIVES_BASELINES_H_
