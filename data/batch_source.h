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
// rank and world are those of the data-parallel axis. No clock, no talking:
// every rank computes its share from the seed (sampler.h). An actor that
// prefetches calls Next() ahead and saves StateAt(), which counts what was
// trained on and not what was prefetched.
//
// Not thread-safe. With several workers, a call has threads of its own, which
// end before it does; they share out the samples, each of which has its row of
// a batch, so that who filled which leaves no trace. Cost per micro-batch: two
// blocks from the allocator and the gather itself. The allocator must outlive
// the source, not the batches.

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
  // The last micro-batch of a step has the rest.
  std::int64_t micro_batch_size = 1;
  // Threads that read and decode the samples of a step; any number of them
  // makes the same batches.
  int workers = 1;
};

class BatchSource {
 public:
  // `options.dataset_size` is ignored: it is dataset->size().
  // `allocator` gives host memory; kResourceExhausted of Next() and At() says
  // when there is none left.
  //   kInvalidArgument: rank not in [0, world); workers < 1; as Sampler and
  //                     MicroBatchCuts.
  static absl::StatusOr<BatchSource> Create(DatasetPtr dataset,
                                            SamplerOptions options,
                                            const Share& share,
                                            nn::Allocator& allocator);

  // Replaces `batches` by the rank's micro-batches of the next step, in the
  // order of their numbers; always micro_batches_per_step() of them.
  // Errors are those of Dataset::Fill(); the step can then be asked for again.
  absl::Status Next(std::vector<Batch>& batches);
  // The same for the step `n` after the start or the load; does not move
  // Next().
  absl::Status At(std::int64_t n, std::vector<Batch>& batches);

  // See Sampler.
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
  Range block_;  // micro-batch numbers of this rank
  int workers_;
  nn::Allocator* allocator_;
  std::int64_t next_ = 0;
};

// The share of one rank of an evaluation: every sample exactly once over all
// ranks, in order, without padding. Rank r of W has the contiguous samples
// [r*N/W, (r+1)*N/W), in batches of micro_batch_size, the last one shorter. So
// ranks may have one batch more or less than others, or none.
class EvaluationSource {
 public:
  // kInvalidArgument: rank not in [0, world), micro_batch_size or workers < 1.
  static absl::StatusOr<EvaluationSource> Create(DatasetPtr dataset,
                                                 const Share& share,
                                                 nn::Allocator& allocator);

  std::int64_t batch_count() const;
  // Batch `i` of batch_count(). `position` is the number of its first sample
  // in the dataset, `global_batch_size` the dataset's size.
  absl::StatusOr<Batch> At(std::int64_t i) const;

  Range samples() const { return samples_; }  // this rank's

 private:
  EvaluationSource(DatasetPtr dataset, Range samples, const Share& share,
                   nn::Allocator& allocator);

  DatasetPtr dataset_;
  Range samples_;
  std::int64_t micro_batch_size_;
  int workers_;
  nn::Allocator* allocator_;
};

}  // namespace troupe::data

#endif  // DATA_BATCH_SOURCE_H_
