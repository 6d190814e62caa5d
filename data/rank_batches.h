// The batches of one rank in an epoch, for training loops written by hand:
// PyTorch's DistributedSampler and BatchSampler in one, in the order of a job.
//
//   RankBatchesOptions options;
//   options.dataset_size = 60000, options.batch_size = 64;
//   options.rank = 1, options.world = 4, options.seed = 7;
//   TROUPE_ASSIGN_OR_RETURN(RankBatches batches, RankBatches::Create(options));
//   for (int64_t epoch = 0; epoch < 3; ++epoch) {
//     batches.SetEpoch(epoch);
//     for (int64_t i = 0; i < batches.size(); ++i) {
//       const RankBatch batch = batches.At(i);      // 64 samples' indices
//     }
//   }
//
// A global batch is batch_size samples of each rank. Whole ones are those of a
// job with the same seed and global batch size (sampler.h), and a rank has the
// same share of them: its world-th part in the epoch's order. In PyTorch a
// global batch has the same samples, dealt out one by one.
//
// The end of an epoch is as in PyTorch, so that all ranks have equally many
// batches of equal sizes. Without drop_last the last global batch is filled up
// to a multiple of `world` with samples from the beginning of the epoch's order
// (all of it again and again, if it is shorter): each rank has
// ceil(dataset_size / world) samples, and its last batch may be smaller. With
// drop_last, as with drop_last of both of PyTorch's samplers, a last global
// batch that is not whole is left out.
//
// Cost: SetEpoch() takes O(dataset_size) for another epoch, At() O(batch_size).
// Memory: 8 bytes per sample. Threads: one at a time.

#ifndef DATA_RANK_BATCHES_H_
#define DATA_RANK_BATCHES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "data/sampler.h"

namespace troupe::data {

struct RankBatchesOptions {
  std::int64_t dataset_size = 0;
  std::int64_t batch_size = 1;  // samples of a rank
  int rank = 0;
  int world = 1;
  std::uint64_t seed = 0;
  bool shuffle = false;
  bool drop_last = false;
};

struct RankBatch {
  std::vector<std::int64_t> indices;  // samples of the dataset
  std::int64_t epoch = 0;
  // Index of the first sample in the global batch, and number of samples of
  // all ranks, with those that were filled in.
  std::int64_t position = 0;
  std::int64_t global_batch_size = 0;
};

class RankBatches {
 public:
  // kInvalidArgument: rank not in [0, world), batch_size below 1, no samples,
  //                   or with drop_last not enough for one global batch.
  static absl::StatusOr<RankBatches> Create(const RankBatchesOptions& options);

  // Number of batches of a rank in an epoch; the same on every rank.
  std::int64_t size() const { return sampler_.batches_per_epoch(); }

  // `epoch` in [0, 2^32); 0 at first.
  void SetEpoch(std::int64_t epoch) { epoch_ = epoch; }
  std::int64_t epoch() const { return epoch_; }

  // Returns batch `i` of size().
  RankBatch At(std::int64_t i);

 private:
  RankBatches(const RankBatchesOptions& options, Sampler sampler);

  const RankBatchesOptions options_;
  Sampler sampler_;
  std::int64_t epoch_ = 0;
};

}  // namespace troupe::data

#endif  // DATA_RANK_BATCHES_H_
