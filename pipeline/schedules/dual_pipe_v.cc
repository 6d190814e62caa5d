// DualPipe, cut in half: a rank has its own stages and those of the rank that
// would mirror it. Actions that both directions overlap are adjacent here.

#include <queue>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/schedules/producer.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::pipeline {
namespace {

// The steps are those of the original, in its order.
StepTable DualPipeVRow(int pp, int rank, int micro_batches) {
  Row row(micro_batches, /*chunks=*/2);
  const int behind = pp - 1 - rank;
  for (int k = 0; k < 2 * behind; ++k) row.F(0);
  for (int k = 0; k < rank + 1; ++k) {
    row.F(0);
    row.F(1);
  }
  for (int k = 0; k < behind; ++k) {
    row.I(1);
    row.W(1);
    row.F(1);
  }
  for (int k = 0; k < micro_batches - 2 * pp + rank + 1; ++k) {
    row.F(0);
    row.I(1);
    row.W(1);
    row.F(1);
    row.I(0);
    row.W(0);
  }
  for (int k = 0; k < behind; ++k) {
    row.I(1);
    row.W(1);
    row.F(1);
    row.I(0);
    row.W(0);
  }
  // From the middle on, weight gradients are delayed and run oldest first.
  std::queue<int> put_off;  // chunks
  const auto backward = [&](int chunk, bool puts_off) {
    row.I(chunk);
    if (puts_off) {
      put_off.push(chunk);
    } else {
      row.W(chunk);
    }
  };
  const auto weights = [&] {
    row.W(put_off.front());
    put_off.pop();
  };
  const int middle = (rank + 1) / 2;
  for (int k = 0; k < rank + 1; ++k) {
    backward(1, k > middle || (k == middle && rank % 2 == 1));
    backward(0, k >= middle);
  }
  for (int k = 0; k < behind; ++k) {
    weights();
    backward(0, /*puts_off=*/true);
  }
  while (!put_off.empty()) weights();
  return row.Take();
}

}  // namespace

absl::StatusOr<Tables> DualPipeV(int pp, int micro_batches) {
  TROUPE_RETURN_IF_ERROR(CheckProducer(pp, micro_batches));
  if (micro_batches < 2 * pp) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: dualpipe_v takes at least 2 pp = ", 2 * pp,
                     " micro-batches, and there are ", micro_batches,
                     "; make them smaller"));
  }
  Tables tables;
  for (int rank = 0; rank < pp; ++rank) {
    tables.push_back(DualPipeVRow(pp, rank, micro_batches));
  }
  return tables;
}

}  // namespace troupe::pipeline
