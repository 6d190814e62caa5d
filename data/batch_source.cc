#include "data/batch_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::data {
namespace {

absl::Status CheckShare(const DatasetPtr& dataset, const Share& share) {
  TROUPE_CHECK(dataset != nullptr, "a source has a dataset");
  if (share.world < 1 || share.rank < 0 || share.rank >= share.world) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", share.rank, " is not one of the ", share.world,
                     " data-parallel ranks"));
  }
  if (share.micro_batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "micro_batch_size (", share.micro_batch_size, ") must be at least 1"));
  }
  return absl::OkStatus();
}

absl::Status FillBatch(const Dataset& dataset,
                       absl::Span<const std::int64_t> indices,
                       std::int64_t epoch, nn::Allocator& allocator,
                       Batch& batch) {
  const SampleSpec& spec = dataset.spec();
  const std::int64_t size = static_cast<std::int64_t>(indices.size());
  batch.epoch = epoch;
  TROUPE_ASSIGN_OR_RETURN(
      batch.inputs,
      nn::Tensor::Create(spec.InputShape(size), spec.input_dtype, allocator));
  TROUPE_ASSIGN_OR_RETURN(
      batch.targets,
      nn::Tensor::Create(spec.TargetShape(size), spec.target_dtype, allocator));
  return dataset.Fill(indices, epoch, batch.inputs, batch.targets);
}

}  // namespace

BatchSource::BatchSource(DatasetPtr dataset, Sampler sampler, Range block,
                         std::int64_t micro_batches, nn::Allocator& allocator)
    : dataset_(std::move(dataset)),
      sampler_(std::move(sampler)),
      block_(block),
      micro_batches_(micro_batches),
      allocator_(&allocator) {}

absl::StatusOr<BatchSource> BatchSource::Create(DatasetPtr dataset,
                                                SamplerOptions options,
                                                const Share& share,
                                                nn::Allocator& allocator) {
  TROUPE_RETURN_IF_ERROR(CheckShare(dataset, share));
  options.dataset_size = dataset->size();
  TROUPE_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(options));
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t micro_batches,
                          MicroBatchCount(options.global_batch_size,
                                          share.micro_batch_size, share.world));
  return BatchSource(std::move(dataset), std::move(sampler),
                     BlockOf(micro_batches, share.rank, share.world),
                     micro_batches, allocator);
}

absl::Status BatchSource::Next(std::vector<Batch>& batches) {
  TROUPE_RETURN_IF_ERROR(At(next_, batches));
  ++next_;
  return absl::OkStatus();
}

absl::Status BatchSource::At(std::int64_t n, std::vector<Batch>& batches) {
  const GlobalBatch global = sampler_.BatchAt(n);
  const absl::Span<const std::int64_t> indices = sampler_.Indices(global);
  batches.resize(block_.size());
  for (std::int64_t m = block_.begin; m < block_.end; ++m) {
    const Range range = BlockOf(global.size, m, micro_batches_);
    Batch& batch = batches[m - block_.begin];
    batch.position = range.begin;
    batch.global_batch_size = global.size;
    TROUPE_RETURN_IF_ERROR(FillBatch(*dataset_,
                                     indices.subspan(range.begin, range.size()),
                                     global.epoch, *allocator_, batch));
  }
  return absl::OkStatus();
}

absl::Status BatchSource::Load(const SamplerState& state) {
  TROUPE_RETURN_IF_ERROR(sampler_.Load(state));
  next_ = 0;
  return absl::OkStatus();
}

EvaluationSource::EvaluationSource(DatasetPtr dataset, Range samples,
                                   std::int64_t micro_batch_size,
                                   nn::Allocator& allocator)
    : dataset_(std::move(dataset)),
      samples_(samples),
      micro_batch_size_(micro_batch_size),
      allocator_(&allocator) {}

absl::StatusOr<EvaluationSource> EvaluationSource::Create(
    DatasetPtr dataset, const Share& share, nn::Allocator& allocator) {
  TROUPE_RETURN_IF_ERROR(CheckShare(dataset, share));
  const Range samples = BlockOf(dataset->size(), share.rank, share.world);
  return EvaluationSource(std::move(dataset), samples, share.micro_batch_size,
                          allocator);
}

std::int64_t EvaluationSource::batch_count() const {
  return samples_.size() / micro_batch_size_ +
         (samples_.size() % micro_batch_size_ != 0);
}

absl::StatusOr<Batch> EvaluationSource::At(std::int64_t i) const {
  TROUPE_CHECK(0 <= i && i < batch_count(), "a batch is one of batch_count()");
  const std::int64_t begin = samples_.begin + i * micro_batch_size_;
  const std::int64_t end = std::min(begin + micro_batch_size_, samples_.end);
  std::vector<std::int64_t> indices(end - begin);
  std::iota(indices.begin(), indices.end(), begin);
  Batch batch;
  batch.position = begin;
  batch.global_batch_size = dataset_->size();
  TROUPE_RETURN_IF_ERROR(
      FillBatch(*dataset_, indices, /*epoch=*/0, *allocator_, batch));
  return batch;
}

}  // namespace troupe::data
