// The micro-batches of one rank, step by step: dataset + sampler + memory.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       BatchSource source,
//       BatchSource::Create(train, sampler_options,
//                           {/*rank=*/0, /*world=*/2, /*micro_batch_size=*/32},
//                           allocator));
//   std::vector<Batch> batches;                 // reuse it from step to step
//   absl::Status s = source.Next(batches);      // this rank's micro-batches
//   SamplerState saved = source.StateAt(steps_committed);
//
// rank and world are those of the data-parallel axis. Every rank computes its
// share from the seed (sampler.h), without a clock or communication. An actor
// that prefetches calls Next() ahead and saves StateAt(), which counts the
// samples trained on, not those prefetched.
//
// Not thread-safe. With several workers, a call starts threads, which end
// before it returns. Each sample has its row of a batch, so the contents do not
// depend on which thread fills it. Cost per micro-batch: two blocks from the
// allocator and the gather itself. The allocator must outlive the source, not
// the batches.

#ifndef DATA_BATCH_SOURCE_H_
#define DATA_BATCH_SOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "nn/tensor/allocator.h"

namespace troupe::data {

// The part of every global batch that a rank takes.
struct Share {
  int rank = 0;
  int world = 1;
  // Samples of a micro-batch; the last one of a step also has the rest.
  std::int64_t micro_batch_size = 1;
  // Number of threads that read and decode the samples of a step. The batches
  // do not depend on it.
  int workers = 1;
  // Whether an EvaluationSource has as many batches on all ranks; the last ones
  // of ranks with fewer samples are empty.
  bool even_batches = false;
};

class BatchSource {
 public:
  // `options.dataset_size` is ignored: dataset->size() is used.
  // `allocator` provides host memory; Next() and At() return kResourceExhausted
  // if it has none left.
  //   kInvalidArgument: rank not in [0, world); workers < 1; errors of Sampler
  //                     and MicroBatchCuts.
  static absl::StatusOr<BatchSource> Create(DatasetPtr dataset,
                                            SamplerOptions options,
                                            const Share& share,
                                            nn::Allocator& allocator);

  // Replaces `batches` by the rank's micro_batches_per_step() micro-batches of
  // the next step, in order.
  // Errors are those of Dataset::Fill(); the call can then be repeated.
  absl::Status Next(std::vector<Batch>& batches);
  // Does the same for step `n` after the start or the load, without advancing
  // Next().
  absl::Status At(std::int64_t n, std::vector<Batch>& batches);

  // See Sampler for the states.
  SamplerState StateAt(std::int64_t n) const { return sampler_.StateAt(n); }
  SamplerState state() const { return sampler_.StateAt(next_); }
  absl::Status Load(const SamplerState& state);

  std::int64_t micro_batches_per_step() const { return cuts_.per_rank(); }
  const Sampler& sampler() const { return sampler_; }
  const Dataset& dataset() const { return *dataset_; }

 private:
  BatchSource(DatasetPtr dataset, Sampler sampler, const MicroBatchCuts& cuts,
              const Share& share, nn::Allocator& allocator);

  DatasetPtr dataset_;
  Sampler sampler_;
  MicroBatchCuts cuts_;
  Range block_;  // micro-batches of this rank
  int workers_;
  nn::Allocator* allocator_;
  std::int64_t next_ = 0;
};

// The share of one rank in an evaluation, which visits every sample exactly
// once over all ranks, in order, without padding. Rank r of W has the
// contiguous samples [r*N/W, (r+1)*N/W), in batches of micro_batch_size, the
// last one shorter. So ranks may have different numbers of batches, or none.
class EvaluationSource {
 public:
  // kInvalidArgument: rank not in [0, world), micro_batch_size or workers < 1.
  static absl::StatusOr<EvaluationSource> Create(DatasetPtr dataset,
                                                 const Share& share,
                                                 nn::Allocator& allocator);

  std::int64_t batch_count() const { return batch_count_; }
  // Returns batch `i` of batch_count(). `position` is the index of its first
  // sample
  // in the dataset, `global_batch_size` the dataset's size.
  absl::StatusOr<Batch> At(std::int64_t i) const;

  Range samples() const { return samples_; }  // samples of this rank

 private:
  EvaluationSource(DatasetPtr dataset, Range samples, const Share& share,
                   nn::Allocator& allocator);

  DatasetPtr dataset_;
  Range samples_;
  std::int64_t micro_batch_size_;
  std::int64_t batch_count_;
  int workers_;
  nn::Allocator* allocator_;
};

}  // namespace troupe::data

#endif  // DATA_BATCH_SOURCE_H_
