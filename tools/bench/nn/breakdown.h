// Breaks down the time of a step: rows of a table, as fractions of a step on
// one rank whose kernels are timed op by op (op_clock.h).
//
//   const auto job = [&](int ranks) { return what.Job(ranks); };
//   TROUPE_RETURN_IF_ERROR(AddBreakdown("gpt bf16", job, /*ranks=*/{1, 2},
//                                       flops, peak, /*seconds=*/1, table));
//
// The first four rows add up to the step:
//
//     at the peak       time of the step's work at the core's peak rate
//     slower products   time of products (linear layers, convolutions,
//                       attention, matrices) beyond that
//     other ops         norms, activations, sums, losses, the update
//     outside ops       tape, tensors, tables of actions, waiting for samples
//
// A row follows for each op that takes a hundredth of a step or more. Then, for
// each larger number of ranks, the time of a step beyond that of one rank's, as
// fractions of the latter:
//
//     longer              all of it
//     longer products     shared resources: clock, caches, memory
//     longer other ops    likewise; updates read and write more with ranks
//     longer outside ops  reductions, waiting for other ranks and for samples

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

// Makes the job on `ranks` ranks, each with the batch of one rank.
using JobOfRanks = std::function<absl::StatusOr<actors::JobSpec>(int ranks)>;

// Adds the rows to `table`. `label` begins their names; `flops` are those of
// one rank's step.
absl::Status AddBreakdown(const std::string& label, const JobOfRanks& job,
                          absl::Span<const int> ranks, double flops,
                          const Peak& peak, double seconds, FigureTable& table);

// Returns whether an op is a product: "Conv2dBackwardWeight", but not
// "AddBias".
bool IsProduct(const std::string& op);

}  // namespace troupe::bench

#endif  // TOOLS_BENCH_NN_BREAKDOWN_H_
