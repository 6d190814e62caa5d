// A distributed sampler like PyTorch's, for training loops written by hand.
//
//   DistributedSamplerOptions options;
//   options.dataset_size = 10, options.rank = 1, options.world = 4;
//   TROUPE_ASSIGN_OR_RETURN(DistributedSampler sampler,
//                           DistributedSampler::Create(options));
//   for (int64_t epoch = 0; epoch < epochs; ++epoch) {
//     sampler.SetEpoch(epoch);                // or every epoch looks alike
//     for (int64_t index : sampler.Indices()) Use(index);
//   }
//
// As in torch.utils.data.DistributedSampler, the epoch's order is padded with
// its own beginning to a multiple of `world` (or, with drop_last, cut to one),
// and the rank takes every world-th index, beginning at its rank. All ranks get
// equally many. The shuffled order is that of epoch_order.h, not torch's. The
// trainer itself uses sampler.h, which neither pads nor depends on `world`.

#ifndef DATA_DISTRIBUTED_SAMPLER_H_
#define DATA_DISTRIBUTED_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace troupe::data {

struct DistributedSamplerOptions {
  std::int64_t dataset_size = 0;
  int rank = 0;
  int world = 1;
  bool shuffle = true;
  std::uint64_t seed = 0;
  bool drop_last = false;
};

class DistributedSampler {
 public:
  // kInvalidArgument: rank not in [0, world), or a negative dataset_size.
  static absl::StatusOr<DistributedSampler> Create(
      const DistributedSamplerOptions& options);

  // `epoch` in [0, 2^32); 0 at first.
  void SetEpoch(std::int64_t epoch) { epoch_ = epoch; }

  // Returns this rank's num_samples() samples of the epoch. O(dataset_size).
  std::vector<std::int64_t> Indices() const;

  // Number of samples of a rank in an epoch; the same on every rank.
  std::int64_t num_samples() const;

 private:
  explicit DistributedSampler(const DistributedSamplerOptions& options)
      : options_(options) {}

  DistributedSamplerOptions options_;
  std::int64_t epoch_ = 0;
};

}  // namespace troupe::data

#endif  // DATA_DISTRIBUTED_SAMPLER_H_
