// Where the time of a step goes: rows of a table, as parts of a step on one
// rank whose kernels are timed op by op (op_clock.h).
//
//   TROUPE_RETURN_IF_ERROR(
//       AddBreakdown("gpt bf16", spec, flops, peak, /*seconds=*/1, table));
//
// First four rows that add up to the step:
//
//     at the peak       what the step's work would take at the core's peak
//     slower products   what products (linear layers, convolutions, attention,
//                       matrices) take beyond that
//     other ops         norms, activations, sums, losses, the update
//     outside ops       tape, tensors, tables of actions, waiting for samples
//
// then a row for each op that takes a hundredth of a step or more.

#ifndef TOOLS_BENCH_NN_BREAKDOWN_H_
#define TOOLS_BENCH_NN_BREAKDOWN_H_

#include <string>

#include "absl/status/status.h"
#include "actors/job_spec.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/nn/step_work.h"

namespace troupe::bench {

// `label` begins the names of the rows; `flops` are those of a step.
absl::Status AddBreakdown(const std::string& label, actors::JobSpec spec,
                          double flops, const Peak& peak, double seconds,
                          FigureTable& table);

// Whether an op is a product: "Conv2dBackwardWeight", but not "AddBias".
bool IsProduct(const std::string& op);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_NN_BREAKDOWN_H_
