// What a training step has to compute, and what the core could compute at most.
//
//   TROUPE_ASSIGN_OR_RETURN(double flops, StepFlops(spec));
//   const Peak peak = MeasurePeak(/*bf16=*/true);
//   double of_peak = flops * steps_per_second / (peak.gflops * 1e9);
//
// The convention for the work of a step: three times that of its forward, as
// nn/modules/summary.h counts it (a multiply-add is two operations), since
// backward has two products for each of the forward; less the gradient of the
// samples, which nobody computes: one forward of the first layer. What runs
// twice because it was not kept counts once. Loss and update do not count.

#ifndef TOOLS_BENCH_NN_STEP_WORK_H_
#define TOOLS_BENCH_NN_STEP_WORK_H_

#include "absl/status/statusor.h"
#include "actors/spec/job_spec.h"

namespace troupe::bench {

// Operations of a step of one rank. Errors of a shape-only forward.
absl::StatusOr<double> StepFlops(const actors::JobSpec& spec);

struct Peak {
  double gflops = 0;
  // Whether the CPU has instructions for the precision. Without those for bf16,
  // the peak is that of f32.
  bool native = true;
};

// The peak of one core now (cpu_info.h): takes 5 ms or so, in the caller's
// thread.
Peak MeasurePeak(bool bf16);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_NN_STEP_WORK_H_
