// The plain types of a step, which the step engine and the messages of actors
// share. They do not use the actor framework.

#ifndef ACTORS_CHUNKS_STEP_STEP_TYPES_H_
#define ACTORS_CHUNKS_STEP_STEP_TYPES_H_

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

// A prediction runs like an evaluation, but returns the model's output in place
// of a loss. The last two are no steps: in them ranks bring together what they
// have apart (actors/engine/share_state.h).
enum class StepKind : std::uint8_t {
  kTrain,
  kEvaluate,
  kPredict,
  kShareBuffers,
  kGatherStates
};

// Returns whether a kind is no step, but what replicas share between steps.
inline bool SharesState(StepKind kind) {
  return kind == StepKind::kShareBuffers || kind == StepKind::kGatherStates;
}

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

// Sum, count and number correct of the losses of one step, as bits of doubles:
// messages contain no floats (docs/caf.md).
struct LossBits {
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
  std::uint64_t correct = 0;
  std::uint64_t skipped = 0;  // 1: gradients were not finite, nothing updated
  std::uint64_t scale = 0;    // loss scale of the step
  // Norm of the mean gradients before clipping; 0 if it was not computed.
  std::uint64_t grad_norm = 0;

  // Returns the mean loss; NaN if no target was counted.
  double mean() const { return PerTarget(sum); }
  // Returns the mean or the sum, as `reduction` says.
  double Reduced(nn::ops::LossReduction reduction) const {
    return reduction == nn::ops::LossReduction::kSum ? FromBits(sum) : mean();
  }
  double accuracy() const { return PerTarget(correct); }

 private:
  // Does not divide 0 by 0: the sign of that NaN depends on the processor.
  double PerTarget(std::uint64_t bits) const {
    const double targets = FromBits(count);
    return targets == 0 ? std::numeric_limits<double>::quiet_NaN()
                        : FromBits(bits) / targets;
  }
};

// An activation (forward) from the stage before `stage`, or its gradient from
// the stage after it, sent to stage `stage`.
struct Transfer {
  std::int32_t generation = 0;
  std::int32_t stage = 0;
  std::int64_t step = 0;
  StepKind kind = StepKind::kTrain;
  bool forward = true;
  std::int32_t micro_batch = 0;
  // The activations, then the skip connections in the order of
  // StagePlan::skips; or the gradient of each, undefined if it has none. Empty:
  // a credit, which an evaluation sends in place of gradients.
  nn::TensorList tensors;
  // Event after which the tensors may be read, on a device with queues.
  base::Event ready = {};
};

// Copy of the parameters and optimizer states of one rank; training may
// continue meanwhile.
struct Snapshot {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  CheckpointShard tensors;  // empty unless the rank writes (a part of) a shard
  // Hashes of the rank's buckets (actors/engine/replica_hash.h); empty:
  // replicas are not compared.
  std::vector<std::uint64_t> hashes;
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

// The parts of a snapshot that are made.
struct SnapshotParts {
  bool copies = true;
  bool hashes = false;
  // Whether the copies are the rank's own parts of tensors, not whole ones.
  bool in_place = false;
};

class ReplicaHash;  // actors/engine/replica_hash.h

// A snapshot that may be read once `ready` has completed, unless it has still
// to be hashed (AdvanceHash() in actors/engine/snapshot.h).
struct PendingSnapshot {
  std::shared_ptr<Snapshot> snapshot;
  base::Event ready;
  std::shared_ptr<ReplicaHash> hash;  // null: none is left to do
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_STEP_TYPES_H_
