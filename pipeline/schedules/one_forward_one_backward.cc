// GPipe, 1F1B, and both with several chunks a rank.

#include <algorithm>

#include "base/check.h"
#include "pipeline/schedules/producer.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::pipeline {

absl::StatusOr<Tables> GPipe(int pp, int micro_batches) {
  return BreadthFirst(pp, micro_batches, /*chunks=*/1);
}

absl::StatusOr<Tables> BreadthFirst(int pp, int micro_batches, int chunks) {
  TROUPE_RETURN_IF_ERROR(CheckProducer(pp, micro_batches, chunks));
  return Tables(pp, GPipeTable(micro_batches, chunks));
}

absl::StatusOr<Tables> OneForwardOneBackward(int pp, int micro_batches) {
  TROUPE_RETURN_IF_ERROR(CheckProducer(pp, micro_batches));
  Tables tables;
  for (int rank = 0; rank < pp; ++rank) {
    Row row(micro_batches, /*chunks=*/1);
    // A rank runs one forward ahead for each rank behind it.
    const int ahead = std::min(micro_batches, pp - 1 - rank);
    for (int k = 0; k < ahead; ++k) row.F(0);
    for (int k = 0; k < micro_batches; ++k) {
      row.F(0);
      row.B(0);
    }
    tables.push_back(row.Take());
  }
  return tables;
}

absl::StatusOr<Tables> InterleavedOneForwardOneBackward(int pp,
                                                        int micro_batches,
                                                        int chunks) {
  TROUPE_RETURN_IF_ERROR(CheckProducer(pp, micro_batches, chunks));
  const int rounds = std::max(1, micro_batches / pp);
  if (micro_batches % rounds != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: interleaved 1F1B takes micro-batches in rounds of ", pp,
        " or more, all alike: ", micro_batches, " micro-batches make no ",
        rounds, " equal rounds; make ", rounds * pp));
  }
  const int round = micro_batches / rounds;
  const int total = micro_batches * chunks;
  const auto chunk_of = [&](int k) { return k / round % chunks; };
  Tables tables;
  for (int rank = 0; rank < pp; ++rank) {
    Row row(micro_batches, chunks);
    const int ahead =
        std::min(total, 2 * (pp - 1 - rank) + (chunks - 1) * round);
    for (int k = 0; k < ahead; ++k) row.F(chunk_of(k));
    for (int k = 0; k < total; ++k) {
      if (k + ahead < total) row.F(chunk_of(k + ahead));
      row.B(chunks - 1 - chunk_of(k));
    }
    tables.push_back(row.Take());
  }
  return tables;
}

}  // namespace troupe::pipeline
