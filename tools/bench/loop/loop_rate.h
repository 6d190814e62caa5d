// Measures how long training steps of a loop of one's own take, as
// actors/step_seconds.h does for a job.
//
//   TROUPE_ASSIGN_OR_RETURN(actors::JobSpec spec,
//                           MakeTrainJob("mnist_mlp", /*ranks=*/2));
//   TROUPE_ASSIGN_OR_RETURN(
//       double rate, LoopStepsPerSecond(spec, {/*ranks=*/2, /*seconds=*/1}));

#ifndef TOOLS_BENCH_LOOP_LOOP_RATE_H_
#define TOOLS_BENCH_LOOP_LOOP_RATE_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::bench {

struct LoopOptions {
  int ranks = 1;       // threads
  double seconds = 1;  // time of the steps that count
  // Whether the backward updates parameters (DDP::StepInBackward).
  bool step_in_backward = false;
};

// Trains the model of a job on its samples, by its optimizer and with a cross
// entropy, in a loop with DDP. Returns its steps per second after a warm-up of
// a quarter of `seconds`: the median of ten blocks.
//   the status of Spawn(): the loop failed.
absl::StatusOr<double> LoopStepsPerSecond(const actors::JobSpec& spec,
                                          const LoopOptions& options);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_LOOP_LOOP_RATE_H_
