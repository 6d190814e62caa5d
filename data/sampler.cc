#include "data/sampler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/field_error.h"
#include "data/description/compare_data.h"
#include "data/epoch_order.h"

namespace troupe::data {

Range BlockOf(std::int64_t count, std::int64_t part, std::int64_t parts) {
  TROUPE_CHECK(0 <= part && part < parts, "a part is one of the parts");
  // Computes (part * count) / parts without a product that could overflow.
  const std::int64_t each = count / parts;
  const std::int64_t rest = count % parts;
  return {part * each + part * rest / parts,
          (part + 1) * each + (part + 1) * rest / parts};
}

absl::StatusOr<MicroBatchCuts> MicroBatchCuts::Create(
    std::int64_t global_batch_size, std::int64_t micro_batch_size, int world) {
  if (global_batch_size < 1 || micro_batch_size < 1 || world < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "global_batch_size (", global_batch_size, "), micro_batch_size (",
        micro_batch_size, ") and the data-parallel width (", world,
        ") must be at least 1"));
  }
  if (global_batch_size < world) {
    return absl::InvalidArgumentError(
        absl::StrCat("global_batch_size (", global_batch_size,
                     ") is less than the data-parallel width (", world,
                     "), which leaves ranks without a sample; raise it"));
  }
  const std::int64_t share =
      global_batch_size / world + (global_batch_size % world != 0);
  if (micro_batch_size > share) {
    return absl::InvalidArgumentError(absl::StrCat(
        "micro_batch_size (", micro_batch_size, ") is more than the ", share,
        " samples of a rank; lower it"));
  }
  return MicroBatchCuts(share, micro_batch_size, world);
}

Range MicroBatchCuts::PositionsOf(std::int64_t m, std::int64_t samples) const {
  TROUPE_CHECK(0 <= m && m < world_ * per_rank_,
               "a micro-batch is one of all ranks'");
  const std::int64_t whole = share_ * world_;
  return {BlockOf(samples, BeginOf(m), whole).begin,
          BlockOf(samples, BeginOf(m + 1) - 1, whole).end};
}

absl::Status SamplerOptions::Validate() const {
  const std::string samples = base::FieldName<&SamplerOptions::dataset_size>();
  const std::string batch =
      base::FieldName<&SamplerOptions::global_batch_size>();
  if (dataset_size < 1 || global_batch_size < 1) {
    return base::FieldError<&SamplerOptions::global_batch_size,
                            &SamplerOptions::dataset_size>(
        absl::StrCat(batch, " = ", global_batch_size, " and ", samples, " = ",
                     dataset_size, ": must both be at least 1"));
  }
  if (drop_last && dataset_size < global_batch_size) {
    return base::FieldError<&SamplerOptions::dataset_size,
                            &SamplerOptions::global_batch_size>(absl::StrCat(
        batch, " = ", global_batch_size, " is more than the ", dataset_size,
        " samples of an epoch: no whole step is left; use at "
        "most that"));
  }
  if (weights != nullptr && weights->size() != dataset_size) {
    return base::FieldError<&SamplerOptions::weights>(absl::StrCat(
        base::FieldName<&SamplerOptions::weights>(), " has ", weights->size(),
        " weights for ", dataset_size, " samples; give one for each"));
  }
  return absl::OkStatus();
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  if (options.weights != nullptr) {
    options_.data[kWeightsEntry] = options.weights->hash();
  }
}

absl::StatusOr<Sampler> Sampler::Create(const SamplerOptions& options) {
  TROUPE_RETURN_IF_ERROR(options.Validate());
  return Sampler(options);
}

std::int64_t Sampler::BatchesIn(std::int64_t samples) const {
  const std::int64_t batch = options_.global_batch_size;
  return samples / batch + (!options_.drop_last && samples % batch != 0);
}

GlobalBatch Sampler::BatchAt(std::int64_t n) const {
  TROUPE_CHECK(n >= 0, "batches are numbered from the start");
  const std::int64_t size = options_.global_batch_size;
  const std::int64_t in_first =
      BatchesIn(options_.dataset_size - first_consumed_);
  GlobalBatch batch;
  if (n < in_first) {
    batch.epoch = first_epoch_;
    batch.begin = first_consumed_ + n * size;
  } else {
    const std::int64_t per_epoch = batches_per_epoch();
    batch.epoch = first_epoch_ + 1 + (n - in_first) / per_epoch;
    batch.begin = (n - in_first) % per_epoch * size;
  }
  batch.size = std::min(size, options_.dataset_size - batch.begin);
  return batch;
}

std::int64_t Sampler::BatchesUntil(std::int64_t epochs) const {
  if (epochs <= first_epoch_) return 0;
  return BatchesIn(options_.dataset_size - first_consumed_) +
         (epochs - first_epoch_ - 1) * batches_per_epoch();
}

absl::Span<const std::int64_t> Sampler::Indices(const GlobalBatch& batch) {
  TROUPE_CHECK(0 <= batch.begin && 0 <= batch.size &&
                   batch.size <= options_.dataset_size - batch.begin,
               "a global batch lies inside its epoch");
  if (order_epoch_ != batch.epoch) {
    if (options_.weights != nullptr) {
      options_.weights->Draw(options_.seed, batch.epoch, order_);
    } else {
      EpochOrder(options_.dataset_size, options_.seed, batch.epoch,
                 options_.shuffle, order_);
    }
    order_epoch_ = batch.epoch;
  }
  return absl::MakeConstSpan(order_).subspan(batch.begin, batch.size);
}

absl::Span<const std::int64_t> Sampler::MicroBatchIndices(
    const GlobalBatch& batch, std::int64_t m, const MicroBatchCuts& cuts) {
  const Range range = cuts.PositionsOf(m, batch.size);
  return Indices(batch).subspan(range.begin, range.size());
}

SamplerState Sampler::StateAt(std::int64_t n) const {
  TROUPE_CHECK(n >= 0, "batches are numbered from the start");
  SamplerState state;
  state.epoch = first_epoch_;
  state.samples_consumed = first_consumed_;
  state.dataset_size = options_.dataset_size;
  state.seed = options_.seed;
  state.data = options_.data;
  if (n > 0) {
    const GlobalBatch last = BatchAt(n - 1);
    state.epoch = last.epoch;
    state.samples_consumed = last.begin + last.size;
  }
  return state;
}

absl::Status Sampler::Load(const SamplerState& state) {
  TROUPE_RETURN_IF_ERROR(CompareData(state.data, options_.data));
  if (state.dataset_size != options_.dataset_size ||
      state.seed != options_.seed) {
    return absl::InvalidArgumentError(
        absl::StrCat("the saved sampler state is of ", state.dataset_size,
                     " samples and seed ", state.seed, "; this job has ",
                     options_.dataset_size, " samples and seed ", options_.seed,
                     "; use the same data, or start from step 0"));
  }
  if (state.epoch < 0 || state.epoch > INT64_C(0xffffffff) ||
      state.samples_consumed < 0 ||
      state.samples_consumed > state.dataset_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("impossible sampler state: epoch ", state.epoch, ", ",
                     state.samples_consumed, " samples consumed of ",
                     state.dataset_size, "; use another checkpoint"));
  }
  if (options_.data.empty()) options_.data = state.data;
  first_epoch_ = state.epoch;
  first_consumed_ = state.samples_consumed;
  next_ = 0;
  return absl::OkStatus();
}

}  // namespace troupe::data
