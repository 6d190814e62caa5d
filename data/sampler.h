// Chooses the samples of each training step, and each rank's share of them.
//
//   SamplerOptions options;
//   options.dataset_size = 60000, options.global_batch_size = 256;
//   TROUPE_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(options));
//   TROUPE_ASSIGN_OR_RETURN(
//       MicroBatchCuts cuts,
//       MicroBatchCuts::Create(256, /*micro_batch_size=*/32, /*world=*/4));
//   GlobalBatch batch = sampler.Next();        // the same on all 4 ranks
//   Range mine = cuts.NumbersOf(rank);         // two of the 8
//   for (int64_t m = mine.begin; m < mine.end; ++m)
//     sampler.MicroBatchIndices(batch, m, cuts);       // 32 samples
//   SamplerState saved = sampler.state();
//
// Vocabulary: an epoch's order is a permutation of the samples (epoch_order.h),
// or what was drawn by their weights (sample_weights.h).
// Consecutive ranges of it are the global batches. Rank r of W takes the r-th
// of W shares of a global batch, and cuts it into micro-batches. If the share
// is no multiple of their size, the last one is smaller. If it is, the samples
// of a micro-batch do not depend on W: dp width changes only the rank that
// computes it. Each rank computes this from the seed, without communication.
//
// The last global batch of an epoch is dropped with drop_last (the default),
// else it is shorter. A short one of n samples is cut at the same places,
// scaled by n over the size of a whole one and rounded down. A global batch
// that W does not divide is cut as a short one of the next multiple of W. So
// the shares of whole global batches differ by one sample at most, each rank
// has as many micro-batches as the others, and some of them may be empty.
//
// Resuming: the state is (epoch, samples of that epoch consumed by the job).
// It may be loaded under another dp width, micro-batch size or global batch
// size: training goes on with the samples not yet seen.
//
// Not thread-safe: one loader owns one sampler. Memory: 8 bytes per sample for
// the current epoch's order; entering an epoch costs O(dataset_size),
// everything else is O(1). Topology invariance: docs/determinism.md.

#ifndef DATA_SAMPLER_H_
#define DATA_SAMPLER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/sample_weights.h"

namespace troupe::data {

struct SamplerOptions {
  std::int64_t dataset_size = 0;
  std::int64_t global_batch_size = 0;  // samples of one step, over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = true;
  // Set: each epoch draws as many samples as there are, with replacement, by
  // these weights (sample_weights.h), and `shuffle` is ignored. The description
  // then has their hash, so that a state is not loaded for others.
  SampleWeightsPtr weights;
  // Description of the samples ({"kind": "glyphs"}); empty: unknown.
  std::map<std::string, std::string> data;

  // kInvalidArgument: no samples, or with drop_last not enough for one step;
  //                   as many weights as samples are not there.
  // Errors blame the field (base/field_error.h).
  absl::Status Validate() const;
};

// A range of one epoch's order: the samples of one step.
struct GlobalBatch {
  std::int64_t epoch = 0;
  std::int64_t begin = 0;  // position in the epoch's order
  std::int64_t size = 0;   // global_batch_size, or less for the last one

  friend bool operator==(const GlobalBatch& a, const GlobalBatch& b) {
    return a.epoch == b.epoch && a.begin == b.begin && a.size == b.size;
  }
};

// State of a sampler, saved in checkpoints. The last three fields only guard
// against loading it for other data.
struct SamplerState {
  std::int64_t epoch = 0;
  std::int64_t samples_consumed = 0;  // samples of `epoch` used by the job
  std::int64_t dataset_size = 0;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> data = {};  // SamplerOptions::data

  friend bool operator==(const SamplerState& a, const SamplerState& b) {
    return a.epoch == b.epoch && a.samples_consumed == b.samples_consumed &&
           a.dataset_size == b.dataset_size && a.seed == b.seed &&
           a.data == b.data;
  }
};

// A half-open range of numbers.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  friend bool operator==(const Range& a, const Range& b) {
    return a.begin == b.begin && a.end == b.end;
  }
};

// Returns part `part` of `parts` of 0..count-1: [part*count/parts,
// (part+1)*count/parts). Parts are contiguous, in order, and differ in size by
// at most one.
Range BlockOf(std::int64_t count, std::int64_t part, std::int64_t parts);

// How global batches are cut into micro-batches, numbered over all ranks.
class MicroBatchCuts {
 public:
  // kInvalidArgument: a size is below 1, global_batch_size is below world, or
  //                   micro_batch_size is more than the largest rank's share.
  static absl::StatusOr<MicroBatchCuts> Create(std::int64_t global_batch_size,
                                               std::int64_t micro_batch_size,
                                               int world);

  // Returns the number of micro-batches of a rank in every step.
  std::int64_t per_rank() const { return per_rank_; }
  // Returns the micro-batches of rank `rank`.
  Range NumbersOf(int rank) const {
    return {rank * per_rank_, (rank + 1) * per_rank_};
  }
  // Returns the positions of micro-batch `m` in a global batch of `samples`.
  Range PositionsOf(std::int64_t m, std::int64_t samples) const;

 private:
  MicroBatchCuts(std::int64_t share, std::int64_t size, int world)
      : share_(share),
        size_(size),
        world_(world),
        per_rank_(share / size + (share % size != 0)) {}
  // Returns the begin of micro-batch `m` in a global batch of equal shares.
  std::int64_t BeginOf(std::int64_t m) const {
    return m / per_rank_ * share_ + m % per_rank_ * size_;
  }

  std::int64_t share_;  // largest number of samples of a rank
  std::int64_t size_;   // samples of a micro-batch; a rank's last has the rest
  int world_;
  std::int64_t per_rank_;
};

class Sampler {
 public:
  // kInvalidArgument: SamplerOptions::Validate().
  static absl::StatusOr<Sampler> Create(const SamplerOptions& options);

  // Returns the next step's batch.
  GlobalBatch Next() { return BatchAt(next_++); }

  // Returns the batch `n` >= 0 steps after the start (or the loaded state), in
  // O(1), without advancing Next().
  GlobalBatch BatchAt(std::int64_t n) const;

  // Return the samples of the batch, and of its micro-batch `m`. The views are
  // valid until a call for a batch of another epoch.
  absl::Span<const std::int64_t> Indices(const GlobalBatch& batch);
  absl::Span<const std::int64_t> MicroBatchIndices(const GlobalBatch& batch,
                                                   std::int64_t m,
                                                   const MicroBatchCuts& cuts);

  // Returns the number of batches from the start (or the loaded state) to the
  // end of `epochs` whole epochs of the job; 0 if these have ended.
  std::int64_t BatchesUntil(std::int64_t epochs) const;

  // Returns the state after `n` batches since the start or the load, which
  // leaves out prefetched ones. state() is the state after all Next() calls.
  SamplerState StateAt(std::int64_t n) const;
  SamplerState state() const { return StateAt(next_); }

  // Continues from `state`: BatchAt(0) is then the first batch after it.
  // Nothing is compared with a side that has no `data`, nor "classes" or a
  // hash ("content", "vocabulary") with a side that lacks it.
  //   kInvalidArgument: the state has other data, another dataset size or seed,
  //                     or impossible counts. The sampler is unchanged.
  absl::Status Load(const SamplerState& state);

  const SamplerOptions& options() const { return options_; }
  // Returns the number of steps in a whole epoch.
  std::int64_t batches_per_epoch() const {
    return BatchesIn(options_.dataset_size);
  }

 private:
  explicit Sampler(const SamplerOptions& options);
  std::int64_t BatchesIn(std::int64_t samples) const;

  SamplerOptions options_;
  std::int64_t first_epoch_ = 0;     // epoch of batch 0
  std::int64_t first_consumed_ = 0;  // samples of that epoch before batch 0
  std::int64_t next_ = 0;
  std::int64_t order_epoch_ = -1;  // epoch that `order_` belongs to
  std::vector<std::int64_t> order_;
};

}  // namespace troupe::data

#endif  // DATA_SAMPLER_H_
