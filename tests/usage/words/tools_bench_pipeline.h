// Declares names that the usage comments in tools/bench/pipeline/ leave
// undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_BENCH_PIPELINE_H_
#define TESTS_USAGE_WORDS_TOOLS_BENCH_PIPELINE_H_

#include "actors/planning/step_prediction.h"

namespace troupe::bench::usage {

namespace jitter_h {
extern const actors::StepPrediction prediction;
}

}  // namespace troupe::bench::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_BENCH_PIPELINE_H_
