// Declares names that the usage comments in tools/bench/nn/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_TOOLS_BENCH_NN_H_
#define TESTS_USAGE_WORDS_TOOLS_BENCH_NN_H_

#include <string>

#include "actors/spec/job_spec.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/nn/contest.h"
#include "tools/bench/nn/step_work.h"
#include "tools/bench/torch_train.h"

namespace troupe::bench::usage {

namespace breakdown_h {
extern const CaseAndPrecision what;
extern const double flops;
extern const Peak peak;
extern FigureTable& table;
}  // namespace breakdown_h

namespace contest_h {
extern TorchTrain& torch;
extern FigureTable& table;
}  // namespace contest_h

namespace saved_activations_h {
extern const actors::JobSpec spec;
}

namespace step_work_h {
extern const actors::JobSpec spec;
extern const double steps_per_second;
}  // namespace step_work_h

}  // namespace troupe::bench::usage

#endif  // TESTS_USAGE_WORDS_TOOLS_BENCH_NN_H_
