// Measures how long training steps of a loop of one's own take, as
// actors/step_seconds.h does for a job.
//
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           MakeTrainJob("mnist_mlp", /*ranks=*/2));
//   TROUPE_ASSIGN_OR_RETURN(
//       double rate, LoopStepsPerSecond(spec, LoopKind::kDdp, /*ranks=*/2,
//                                       /*seconds=*/1));

#ifndef TOOLS_BENCH_LOOP_LOOP_RATE_H_
#define TOOLS_BENCH_LOOP_LOOP_RATE_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::bench {

enum class LoopKind {
  kDdp,
  kDdpStepInBackward,  // the backward updates parameters
  kDataParallel,       // one rank, which divides its batches among devices
};

// Trains the model of a job on its samples, by its optimizer and with a cross
// entropy, in a loop with `ranks` threads: ranks, or devices of one. Returns
// its steps per second after a warm-up of a quarter of `seconds`: the median of
// ten blocks.
//   the status of Spawn(): the loop failed.
absl::StatusOr<double> LoopStepsPerSecond(const actors::JobSpec& spec,
                                          LoopKind kind, int ranks,
                                          double seconds);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_LOOP_LOOP_RATE_H_
