// The plain types of a step, shared by the runner and the messages: no actor
// framework in here.

#ifndef ACTORS_CHUNKS_STEP_TYPES_H_
#define ACTORS_CHUNKS_STEP_TYPES_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "actors/checkpoint/checkpoint.h"
#include "base/event.h"
#include "data/batch.h"
#include "nn/ops/loss.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

// A prediction runs as an evaluation does, and gives the model's output in
// place of a loss.
enum class StepKind : std::uint8_t { kTrain, kEvaluate, kPredict };

using StepBatches = std::vector<data::Batch>;  // a rank's micro-batches

inline std::uint64_t Bits(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline double FromBits(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Sum, count and correct of the losses of one step, as bits of doubles: no
// float is ever in a message (docs/caf.md).
struct LossBits {
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  std::uint64_t correct = 0;
  std::uint64_t skipped = 0;  // 1: gradients were not finite, nothing updated
  std::uint64_t scale = 0;    // what its gradients were multiplied by
  // The norm of the mean gradients before clipping; 0 where nobody asked.
  std::uint64_t grad_norm = 0;

  // NaN where nothing was counted.
  double mean() const { return PerTarget(sum); }
  // The mean, or the sum.
  double Reduced(nn::ops::LossReduction reduction) const {
    return reduction == nn::ops::LossReduction::kSum ? FromBits(sum) : mean();
  }
  double accuracy() const { return PerTarget(correct); }

 private:
  // Not 0 / 0, whose sign is the processor's choice.
  double PerTarget(std::uint64_t bits) const {
    const double targets = FromBits(count);
    return targets == 0 ? std::numeric_limits<double>::quiet_NaN()
                        : FromBits(bits) / targets;
  }
};

// An activation (forward) or its gradient, for stage `stage` from the stage
// before or after it.
struct Transfer {
  std::int32_t generation = 0;
  std::int32_t stage = 0;
  std::int64_t step = 0;
  StepKind kind = StepKind::kTrain;
  bool forward = true;
  std::int32_t micro_batch = 0;
  // The activation, then the tensors that travel beside it, in the order of
  // StagePlan::skips; or the gradient of each, undefined where it has none.
  // Empty: a credit of an evaluation.
  nn::TensorList tensors;
  // On a device that works later than it is told: when they are there.
  base::Event ready = {};
};

// Parameters and optimizer states of one rank, copied: training may go on.
struct Snapshot {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  CheckpointShard tensors;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// A snapshot that is there when `ready` is done.
struct PendingSnapshot {
  SnapshotPtr snapshot;
  base::Event ready;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_TYPES_H_
