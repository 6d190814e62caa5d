// Helpers for producers of tables: a check of sizes, and a table builder.
//
//   Row row(/*micro_batches=*/4, /*chunks=*/1);
//   row.F(0);  // forward of the next micro-batch of chunk 0
//   row.I(0), row.W(0);
//   tables.push_back(row.Take());

#ifndef PIPELINE_SCHEDULES_PRODUCER_H_
#define PIPELINE_SCHEDULES_PRODUCER_H_

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

inline absl::Status CheckProducer(int pp, int micro_batches, int chunks = 1) {
  if (pp >= 1 && micro_batches >= 1 && chunks >= 1 && chunks <= kChunksMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("schedule: pp = ", pp, ", micro-batches = ", micro_batches,
                   ", chunks = ", chunks, ": each must be at least 1, and ",
                   "chunks at most ", kChunksMax));
}

// Builds the table of a rank. Actions of a kind and chunk are numbered in the
// order of calls. Those beyond the last micro-batch are left out, so that a
// schedule may be written without a check for the last one.
class Row {
 public:
  Row(int micro_batches, int chunks)
      : micro_batches_(micro_batches), next_(4, std::vector<int>(chunks)) {}

  void F(int chunk) { Add(ActionKind::kForward, 0, chunk); }
  void B(int chunk) { Add(ActionKind::kBackward, 1, chunk); }
  void I(int chunk) { Add(ActionKind::kBackwardInputs, 2, chunk); }
  void W(int chunk) { Add(ActionKind::kBackwardWeights, 3, chunk); }

  // Number of actions of each kind so far, including those left out.
  int forwards(int chunk) const { return next_[0][chunk]; }
  int input_gradients(int chunk) const { return next_[2][chunk]; }
  int weight_gradients(int chunk) const { return next_[3][chunk]; }

  StepTable Take() { return WithNeeds(std::move(table_), {}); }

 private:
  void Add(ActionKind kind, int counter, int chunk) {
    const int m = next_[counter][chunk]++;
    if (m < micro_batches_) table_.actions.push_back({kind, m, {}, chunk});
  }

  const int micro_batches_;
  std::vector<std::vector<int>> next_;  // indexed by kind and chunk
  StepTable table_;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_SCHEDULES_PRODUCER_H_
