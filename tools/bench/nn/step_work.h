// The work of a training step, and the peak rate of a core.
//
//   TROUPE_ASSIGN_OR_RETURN(double flops, StepFlops(spec));
//   const Peak peak = MeasurePeak(/*bf16=*/true);
//   double of_peak = flops * steps_per_second / (peak.gflops * 1e9);
//
// By convention, the work of a step is three times that of its forward, as
// counted by nn/modules/summary.h (a multiply-add is two operations), since
// backward has two products for each one of forward. The gradient of the
// samples is not computed, so one forward of the first layer is subtracted.
// Recomputed forwards count once. Loss and update do not count.

#ifndef TOOLS_BENCH_NN_STEP_WORK_H_
#define TOOLS_BENCH_NN_STEP_WORK_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::bench {

// Returns the number of operations of a step of one rank.
//   Errors: those of a shape-only forward.
absl::StatusOr<double> StepFlops(const actors::JobSpec& spec);

struct Peak {
  double gflops = 0;
  // Whether the CPU has instructions for the precision. Without bf16
  // instructions, the peak is that of f32.
  bool native = true;
};

// Measures the peak of one core (cpu_info.h), in about 5 ms in the caller's
// thread.
Peak MeasurePeak(bool bf16);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_NN_STEP_WORK_H_
