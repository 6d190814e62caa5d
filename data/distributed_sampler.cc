#include "data/distributed_sampler.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "data/epoch_order.h"

namespace troupe::data {

absl::StatusOr<DistributedSampler> DistributedSampler::Create(
    const DistributedSamplerOptions& options) {
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " is not one of ", options.world,
                     " ranks; count ranks from 0"));
  }
  if (options.dataset_size < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a dataset of ", options.dataset_size,
                     " samples cannot be sampled; give at least 1"));
  }
  return DistributedSampler(options);
}

std::int64_t DistributedSampler::num_samples() const {
  const std::int64_t rest = options_.dataset_size % options_.world;
  return options_.dataset_size / options_.world +
         (rest != 0 && !options_.drop_last);
}

std::vector<std::int64_t> DistributedSampler::Indices() const {
  std::vector<std::int64_t> order;
  EpochOrder(options_.dataset_size, options_.seed, epoch_, options_.shuffle,
             order);
  std::vector<std::int64_t> indices(num_samples());
  // Indices past the end of the order wrap around, which is the padding.
  std::int64_t at = options_.rank;
  for (std::int64_t& index : indices) {
    index = order[at % options_.dataset_size];
    at += options_.world;
  }
  return indices;
}

}  // namespace troupe::data
