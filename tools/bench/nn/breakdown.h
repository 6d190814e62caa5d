// Where the time of a step goes: rows of a table, as parts of a step on one
// rank whose kernels are timed op by op (op_clock.h).
//
//   const auto job = [&](int ranks) { return what.Job(ranks); };
//   TROUPE_RETURN_IF_ERROR(AddBreakdown("gpt bf16", job, /*ranks=*/{1, 2},
//                                       flops, peak, /*seconds=*/1, table));
//
// First four rows that add up to the step:
//
//     at the peak       what the step's work would take at the core's peak
//     slower products   what products (linear layers, convolutions, attention,
//                       matrices) take beyond that
//     other ops         norms, activations, sums, losses, the update
//     outside ops       tape, tensors, tables of actions, waiting for samples
//
// then a row for each op that takes a hundredth of a step or more. For each
// larger number of ranks, what a step takes beyond one rank's, as parts of the
// latter:
//
//     longer              all of it
//     longer products     what the machine takes: clock, caches, memory
//     longer other ops    likewise; updates read and write more for several
//     longer outside ops  reductions, waiting for each other and for samples

#ifndef TOOLS_BENCH_NN_BREAKDOWN_H_
#define TOOLS_BENCH_NN_BREAKDOWN_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/spec/job_spec.h"
#include "tools/bench/figure_table.h"
#include "tools/bench/nn/step_work.h"

namespace troupe::bench {

// The job in which each of so many ranks has the batch of one.
using JobOfRanks = std::function<absl::StatusOr<actors::JobSpec>(int ranks)>;

// `label` begins the names of the rows; `flops` are those of a rank's step.
absl::Status AddBreakdown(const std::string& label, const JobOfRanks& job,
                          absl::Span<const int> ranks, double flops,
                          const Peak& peak, double seconds, FigureTable& table);

// Whether an op is a product: "Conv2dBackwardWeight", but not "AddBias".
bool IsProduct(const std::string& op);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_NN_BREAKDOWN_H_
