// Whole training steps as bare sequences of kernel calls, without tape, modules
// or actors: the lower bound on a step's time with these kernels.

#ifndef TOOLS_BENCH_OPS_BENCH_STEPS_H_
#define TOOLS_BENCH_OPS_BENCH_STEPS_H_

#include <string>

#include "tools/bench/ops/op_bench_case.h"

namespace troupe::bench {

// Returns the step of toy_mlp, toy_cnn, mnist_mlp or mlp_25m; for other names,
// a case without `run`.
OpBenchCase StepCase(const std::string& name, nn::Kernels& kernels);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_OPS_BENCH_STEPS_H_
