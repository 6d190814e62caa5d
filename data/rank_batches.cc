#include "data/rank_batches.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::data {
namespace {

absl::Status CheckRankBatches(const RankBatchesOptions& options) {
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", options.rank, " is not one of ", options.world,
                     " ranks; count ranks from 0"));
  }
  if (options.batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch_size (", options.batch_size, ") must be at least 1"));
  }
  if (options.dataset_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the dataset has ", options.dataset_size,
                     " samples; use one with at least 1"));
  }
  if (options.batch_size >
      std::numeric_limits<std::int64_t>::max() / options.world) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_size (", options.batch_size, ") of ", options.world,
                     " ranks is more samples than can be counted; lower it"));
  }
  const std::int64_t global = options.batch_size * options.world;
  if (!options.drop_last || options.dataset_size >= global) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "batch_size (", options.batch_size, ") of ", options.world,
      " ranks is more than the ", options.dataset_size,
      " samples of an epoch, and drop_last leaves none; lower batch_size or "
      "unset drop_last"));
}

SamplerOptions SamplerOptionsOf(const RankBatchesOptions& options) {
  SamplerOptions sampler;
  sampler.dataset_size = options.dataset_size;
  sampler.global_batch_size = options.batch_size * options.world;
  sampler.seed = options.seed;
  sampler.shuffle = options.shuffle;
  sampler.drop_last = options.drop_last;
  return sampler;
}

}  // namespace

RankBatches::RankBatches(const RankBatchesOptions& options, Sampler sampler)
    : options_(options), sampler_(std::move(sampler)) {}

absl::StatusOr<RankBatches> RankBatches::Create(
    const RankBatchesOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckRankBatches(options));
  TROUPE_ASSIGN_OR_RETURN(Sampler sampler,
                          Sampler::Create(SamplerOptionsOf(options)));
  return RankBatches(options, std::move(sampler));
}

RankBatch RankBatches::At(std::int64_t i) {
  TROUPE_CHECK(0 <= i && i < size(), "a batch is one of size()");
  const std::int64_t samples = options_.dataset_size;
  const std::int64_t global = sampler_.options().global_batch_size;
  // The epoch's whole order, of which the global batch is a range.
  const absl::Span<const std::int64_t> order =
      sampler_.Indices({epoch_, /*begin=*/0, samples});
  const std::int64_t begin = i * global;
  const std::int64_t size = std::min(global, samples - begin);
  const std::int64_t share =
      size / options_.world + (size % options_.world != 0);
  RankBatch batch;
  batch.epoch = epoch_;
  batch.position = options_.rank * share;
  batch.global_batch_size = share * options_.world;
  batch.indices.reserve(share);
  const std::int64_t first = begin + batch.position;
  for (std::int64_t k = first; k < first + share; ++k) {
    batch.indices.push_back(order[k % samples]);
  }
  return batch;
}

}  // namespace troupe::data
