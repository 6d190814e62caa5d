// Zero-bubble schedules: backwards in two halves, gradients of inputs early,
// since other stages wait for them, and gradients of weights in idle time.

#include <algorithm>

#include "base/check.h"
#include "pipeline/schedules/producer.h"
#include "pipeline/schedules/schedules.h"

namespace troupe::pipeline {
namespace {

// 1F1B with `factor` times as many forwards ahead. A rank delays the weight
// gradients of `factor` micro-batches for each rank before it: so the last rank
// answers without delay, and all ranks hold equally many activations.
absl::StatusOr<Tables> OneChunk(int pp, int micro_batches, int factor) {
  TROUPE_RETURN_IF_ERROR(CheckProducer(pp, micro_batches));
  Tables tables;
  for (int rank = 0; rank < pp; ++rank) {
    Row row(micro_batches, /*chunks=*/1);
    const int ahead = std::min(micro_batches, factor * (pp - 1 - rank));
    const int put_off = factor * rank;
    for (int k = 0; k < ahead; ++k) row.F(0);
    for (int k = 0; k < micro_batches; ++k) {
      row.F(0);
      row.I(0);
      if (k >= put_off) row.W(0);
    }
    while (row.weight_gradients(0) < micro_batches) row.W(0);
    tables.push_back(row.Take());
  }
  return tables;
}

StepTable ZeroBubbleVRow(int pp, int rank, int micro_batches) {
  // The loops assume enough micro-batches to fill the pipeline.
  const int filling = std::max(2 * pp - 1, micro_batches);
  Row row(micro_batches, /*chunks=*/2);
  const auto backward = [&row](int chunk) {
    row.I(chunk);
    row.W(chunk);
  };
  for (int k = 0; k < 2 * (pp - rank) - 1; ++k) row.F(0);
  for (int k = 0; k < rank; ++k) {
    row.F(1);
    row.F(0);
  }
  for (int k = 0; k < pp - rank; ++k) {
    row.F(1);
    backward(1);
  }
  while (row.forwards(1) < row.forwards(0) || row.forwards(0) < filling) {
    if (row.forwards(0) < filling) row.F(0);
    backward(0);
    row.F(1);
    backward(1);
  }
  for (int k = 0; k < rank; ++k) {
    row.I(0);
    row.I(1);
  }
  for (int k = 0; k < pp - rank; ++k) backward(0);
  for (int chunk : {1, 0}) {
    while (row.weight_gradients(chunk) < row.input_gradients(chunk)) {
      row.W(chunk);
    }
  }
  return row.Take();
}

}  // namespace

absl::StatusOr<Tables> ZeroBubbleH1(int pp, int micro_batches) {
  return OneChunk(pp, micro_batches, /*factor=*/1);
}

absl::StatusOr<Tables> ZeroBubbleH2(int pp, int micro_batches) {
  return OneChunk(pp, micro_batches, /*factor=*/2);
}

absl::StatusOr<Tables> ZeroBubbleV(int pp, int micro_batches) {
  TROUPE_RETURN_IF_ERROR(CheckProducer(pp, micro_batches));
  Tables tables;
  for (int rank = 0; rank < pp; ++rank) {
    tables.push_back(ZeroBubbleVRow(pp, rank, micro_batches));
  }
  return tables;
}

}  // namespace troupe::pipeline
