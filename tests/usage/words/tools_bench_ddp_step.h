// What usage in tools/bench/ddp_step/ leaves to its reader.

#ifndef TESTS_USAGE_WORDS_TOOLS_BENCH_DDP_STEP_H_
#define TESTS_USAGE_WORDS_TOOLS_BENCH_DDP_STEP_H_

#include "actors/job_spec.h"

namespace troupe::bench::usage::ddp_run_h {
extern const actors::JobSpec spec;
}

#endif  // TESTS_USAGE_WORDS_TOOLS_BENCH_DDP_STEP_H_
