// Which samples each step of a job trains on, and which of them a rank takes.
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
// Vocabulary: an epoch's order is a permutation of the samples (epoch_order.h).
// Consecutive ranges of it are the global batches. Rank r of W takes the r-th
// of W equal shares of a global batch, and cuts it into micro-batches; where
// the share is no multiple of their size, the last one is smaller. Where it is
// one, what a micro-batch holds does not depend on W: dp width changes only who
// computes it. All of it is arithmetic on the seed; ranks never talk.
//
// The last global batch of an epoch: dropped with drop_last (the default), or
// shorter. A short one of n samples is cut at the same places, times n over the
// size of a whole one, rounded down; with few samples some are empty.
//
// Resuming: the state is (epoch, samples of that epoch consumed by the job).
// It may be loaded under another dp width, micro-batch size or global batch
// size: training goes on with the samples not yet seen.
//
// Not thread-safe: one loader owns one sampler. Memory: 8 bytes per sample for
// the current epoch's order; crossing into an epoch costs O(dataset_size),
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

namespace troupe::data {

struct SamplerOptions {
  std::int64_t dataset_size = 0;
  std::int64_t global_batch_size = 0;  // samples of one step, over all ranks
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = true;
  // What the samples are, by name ({"kind": "glyphs"}); empty: not said.
  std::map<std::string, std::string> data;

  // kInvalidArgument: no samples, or with drop_last not enough for one step.
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

// What a checkpoint holds. The last three only guard against loading it for
// other data.
struct SamplerState {
  std::int64_t epoch = 0;
  std::int64_t samples_consumed = 0;  // of this epoch, by the whole job
  std::int64_t dataset_size = 0;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> data = {};  // as in SamplerOptions

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

// Part `part` of `parts` of 0..count-1: [part*count/parts,
// (part+1)*count/parts). Parts are contiguous, in order, and differ in size by
// at most one.
Range BlockOf(std::int64_t count, std::int64_t part, std::int64_t parts);

// How global batches are cut into micro-batches, numbered over all ranks.
class MicroBatchCuts {
 public:
  // kInvalidArgument: a size is below 1, global_batch_size is not a multiple of
  //                   world, or micro_batch_size is more than a rank's share.
  static absl::StatusOr<MicroBatchCuts> Create(std::int64_t global_batch_size,
                                               std::int64_t micro_batch_size,
                                               int world);

  // Of a rank, in every step.
  std::int64_t per_rank() const { return per_rank_; }
  // The micro-batches of rank `rank`.
  Range NumbersOf(int rank) const {
    return {rank * per_rank_, (rank + 1) * per_rank_};
  }
  // The positions of micro-batch `m` in a global batch of `samples` samples.
  Range PositionsOf(std::int64_t m, std::int64_t samples) const;

 private:
  MicroBatchCuts(std::int64_t share, std::int64_t size, int world)
      : share_(share),
        size_(size),
        world_(world),
        per_rank_(share / size + (share % size != 0)) {}
  // Where micro-batch `m` of a whole global batch begins.
  std::int64_t BeginOf(std::int64_t m) const {
    return m / per_rank_ * share_ + m % per_rank_ * size_;
  }

  std::int64_t share_;  // samples of a rank
  std::int64_t size_;   // of a micro-batch; the last one of a rank has the rest
  int world_;
  std::int64_t per_rank_;
};

class Sampler {
 public:
  // kInvalidArgument: a size is not positive, or drop_last would drop all.
  static absl::StatusOr<Sampler> Create(const SamplerOptions& options);

  // The next step's batch.
  GlobalBatch Next() { return BatchAt(next_++); }

  // The batch `n` steps after the start (or after the state that was loaded),
  // n >= 0, in O(1). Does not move Next().
  GlobalBatch BatchAt(std::int64_t n) const;

  // The samples of the batch, and of its micro-batch `m`. The views hold until
  // a batch of another epoch is asked for.
  absl::Span<const std::int64_t> Indices(const GlobalBatch& batch);
  absl::Span<const std::int64_t> MicroBatchIndices(const GlobalBatch& batch,
                                                   std::int64_t m,
                                                   const MicroBatchCuts& cuts);

  // The batches from the start (or the loaded state) to the end of `epochs`
  // whole epochs of the job; 0 where those are over.
  std::int64_t BatchesUntil(std::int64_t epochs) const;

  // The state after `n` batches since the start or the load; what was merely
  // prefetched does not count. state() is that after all Next() calls.
  SamplerState StateAt(std::int64_t n) const;
  SamplerState state() const { return StateAt(next_); }

  // Goes on from `state`: BatchAt(0) is then the first batch after it.
  // Data that only one of both describes are not compared.
  //   kInvalidArgument: the state is of other data, another dataset size or
  //                     seed, or its counts are impossible. The sampler is
  //                     unchanged.
  absl::Status Load(const SamplerState& state);

  const SamplerOptions& options() const { return options_; }
  // Steps in a whole epoch.
  std::int64_t batches_per_epoch() const {
    return BatchesIn(options_.dataset_size);
  }

 private:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}
  std::int64_t BatchesIn(std::int64_t samples) const;

  SamplerOptions options_;
  std::int64_t first_epoch_ = 0;     // where batch 0 lies
  std::int64_t first_consumed_ = 0;  // in that epoch
  std::int64_t next_ = 0;
  std::int64_t order_epoch_ = -1;  // whose order `order_` is
  std::vector<std::int64_t> order_;
};

}  // namespace troupe::data

#endif  // DATA_SAMPLER_H_
