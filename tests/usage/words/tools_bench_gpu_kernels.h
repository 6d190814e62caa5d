// Declares names that the usage comments in tools/bench/gpu_kernels/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_BENCH_GPU_KERNELS_H_
#define TESTS_USAGE_WORDS_TOOLS_BENCH_GPU_KERNELS_H_

#include <iostream>

#include "nn/kernels/kernels.h"
#include "tools/bench/gpu_kernels/kernel_case.h"

namespace troupe::bench::usage {

namespace kernel_call_h {
extern const KernelCase c;
extern nn::Kernels& kernels;
extern const nn::Tensor x, w, y;
}  // namespace kernel_call_h

namespace kernel_timer_h {
extern const KernelCase c;
}

namespace roofline_h {
extern const double flops, bytes;
}

}  // namespace troupe::bench::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_BENCH_GPU_KERNELS_H_
