// Whole training steps as bare sequences of kernel calls, without tape,
// modules or actors: what a step can cost at best with these kernels.

#ifndef TOOLS_BENCH_OPS_BENCH_STEPS_H_
#define TOOLS_BENCH_OPS_BENCH_STEPS_H_

#include <string>

#include "tools/bench/ops/op_bench_case.h"

namespace troupe::bench {

// toy_mlp, toy_cnn, mnist_mlp or mlp_25m; without `run` for other names.
OpBenchCase StepCase(const std::string& name, nn::Kernels& kernels);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_OPS_BENCH_STEPS_H_
