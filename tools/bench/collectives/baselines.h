// Measures the machine's upper bound by the plainest means, as contestants of
// workers.h.
//
//   RunMemcpy(/*ranks=*/2);    // until the standard input ends
//
// Bytes are counted so that a figure is a lower bound on the time of an
// all-reduce of that many bytes: each rank's range is read once and written
// once; over a network, each rank sends and receives 2 (n - 1) / n of it.

#ifndef TOOLS_BENCH_COLLECTIVES_BASELINES_H_
#define TOOLS_BENCH_COLLECTIVES_BASELINES_H_

#include "absl/status/status.h"

namespace troupe::bench {

// Copies a range in each of `ranks` threads at the same time.
void RunMemcpy(int ranks);

// Runs a ring of `ranks` threads connected by TCP over loopback; at the same
// time, each sends to the next one and receives from the previous one.
absl::Status RunSockets(int ranks);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_COLLECTIVES_BASELINES_H_
