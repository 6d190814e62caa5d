// Runs a job for a while and says how fast it was.
//
//   TROUPE_ASSIGN_OR_RETURN(double rate, StepsPerSecond(spec, /*seconds=*/1));
//
// The time begins after the first step and a warm-up of a quarter of it, and is
// cut into blocks, whose median is the result: another program that takes a
// core for a while spoils some blocks and not the figure. peer_ddp.py does the
// same.

#ifndef TOOLS_BENCH_DDP_STEP_DDP_RUN_H_
#define TOOLS_BENCH_DDP_STEP_DDP_RUN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "actors/job_spec.h"

namespace troupe::bench {

inline constexpr int kRateBlocks = 10;

// The job's status where it fails; kDeadlineExceeded where steps do not come.
absl::StatusOr<double> StepsPerSecond(const actors::JobSpec& spec,
                                      double seconds);

// Largest resident memory of this process so far.
double PeakMemoryMiB();

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_DDP_STEP_DDP_RUN_H_
