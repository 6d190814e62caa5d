#include "data/batch_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/parallel_for.h"

namespace troupe::data {
namespace {

absl::Status CheckShare(const DatasetPtr& dataset, const Share& share) {
  TROUPE_CHECK(dataset != nullptr, "a source has a dataset");
  if (share.world < 1 || share.rank < 0 || share.rank >= share.world) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", share.rank, " is not one of the ", share.world,
                     " data-parallel ranks; count ranks from 0"));
  }
  if (share.micro_batch_size < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "micro_batch_size (", share.micro_batch_size, ") must be at least 1"));
  }
  if (share.workers < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers (", share.workers, ") must be at least 1"));
  }
  return absl::OkStatus();
}

// A batch, and the samples to fill it with.
struct Task {
  Batch* batch;
  absl::Span<const std::int64_t> indices;
};

absl::Status TakeMemory(const SampleSpec& spec, const Task& task,
                        nn::Allocator& allocator) {
  const auto size = static_cast<std::int64_t>(task.indices.size());
  TROUPE_ASSIGN_OR_RETURN(
      task.batch->inputs,
      nn::Tensor::Create(spec.InputShape(size), spec.input_dtype, allocator));
  TROUPE_ASSIGN_OR_RETURN(
      task.batch->targets,
      nn::Tensor::Create(spec.TargetShape(size), spec.target_dtype, allocator));
  return absl::OkStatus();
}

// Fills the batches sample by sample with several threads. Returns the error of
// the first sample that has one, as with one thread.
absl::Status FillBySample(const Dataset& dataset, absl::Span<const Task> tasks,
                          int workers) {
  struct Row {
    const Task* task;
    std::int64_t number;
  };
  std::vector<Row> rows;
  for (const Task& task : tasks) {
    for (std::size_t i = 0; i < task.indices.size(); ++i) {
      rows.push_back({&task, static_cast<std::int64_t>(i)});
    }
  }
  std::vector<absl::Status> statuses(rows.size());
  base::ParallelFor(
      workers, static_cast<std::int64_t>(rows.size()), [&](std::int64_t i) {
        const auto& [task, row] = rows[i];
        const Batch& batch = *task->batch;
        statuses[i] = dataset.Fill(
            task->indices.subspan(static_cast<std::size_t>(row), 1),
            batch.epoch, batch.inputs.Slice(row, row + 1),
            batch.targets.Slice(row, row + 1));
      });
  for (const absl::Status& status : statuses) TROUPE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

// Fills batches whose epoch is set.
absl::Status FillAll(const Dataset& dataset, absl::Span<const Task> tasks,
                     int workers, nn::Allocator& allocator) {
  for (const Task& task : tasks) {
    TROUPE_RETURN_IF_ERROR(TakeMemory(dataset.spec(), task, allocator));
  }
  if (workers > 1) return FillBySample(dataset, tasks, workers);
  for (const Task& task : tasks) {
    TROUPE_RETURN_IF_ERROR(dataset.Fill(task.indices, task.batch->epoch,
                                        task.batch->inputs,
                                        task.batch->targets));
  }
  return absl::OkStatus();
}

}  // namespace

BatchSource::BatchSource(DatasetPtr dataset, Sampler sampler,
                         const MicroBatchCuts& cuts, const Share& share,
                         nn::Allocator& allocator)
    : dataset_(std::move(dataset)),
      sampler_(std::move(sampler)),
      cuts_(cuts),
      block_(cuts.NumbersOf(share.rank)),
      workers_(share.workers),
      allocator_(&allocator) {}

absl::StatusOr<BatchSource> BatchSource::Create(DatasetPtr dataset,
                                                SamplerOptions options,
                                                const Share& share,
                                                nn::Allocator& allocator) {
  TROUPE_RETURN_IF_ERROR(CheckShare(dataset, share));
  options.dataset_size = dataset->size();
  TROUPE_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Create(options));
  TROUPE_ASSIGN_OR_RETURN(
      const MicroBatchCuts cuts,
      MicroBatchCuts::Create(options.global_batch_size, share.micro_batch_size,
                             share.world));
  return BatchSource(std::move(dataset), std::move(sampler), cuts, share,
                     allocator);
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
  absl::InlinedVector<Task, 8> tasks;
  for (std::int64_t m = block_.begin; m < block_.end; ++m) {
    const Range range = cuts_.PositionsOf(m, global.size);
    Batch& batch = batches[m - block_.begin];
    batch.position = range.begin;
    batch.global_batch_size = global.size;
    batch.epoch = global.epoch;
    tasks.push_back({&batch, indices.subspan(range.begin, range.size())});
  }
  return FillAll(*dataset_, tasks, workers_, *allocator_);
}

absl::Status BatchSource::Load(const SamplerState& state) {
  TROUPE_RETURN_IF_ERROR(sampler_.Load(state));
  next_ = 0;
  return absl::OkStatus();
}

EvaluationSource::EvaluationSource(DatasetPtr dataset, Range samples,
                                   const Share& share, nn::Allocator& allocator)
    : dataset_(std::move(dataset)),
      samples_(samples),
      micro_batch_size_(share.micro_batch_size),
      workers_(share.workers),
      allocator_(&allocator) {
  const std::int64_t size = dataset_->size(), world = share.world;
  const std::int64_t most =
      share.even_batches ? size / world + (size % world != 0) : samples_.size();
  batch_count_ = most / micro_batch_size_ + (most % micro_batch_size_ != 0);
}

absl::StatusOr<EvaluationSource> EvaluationSource::Create(
    DatasetPtr dataset, const Share& share, nn::Allocator& allocator) {
  TROUPE_RETURN_IF_ERROR(CheckShare(dataset, share));
  const Range samples = BlockOf(dataset->size(), share.rank, share.world);
  return EvaluationSource(std::move(dataset), samples, share, allocator);
}

absl::StatusOr<Batch> EvaluationSource::At(std::int64_t i) const {
  TROUPE_CHECK(0 <= i && i < batch_count(), "a batch is one of batch_count()");
  const std::int64_t begin =
      std::min(samples_.begin + i * micro_batch_size_, samples_.end);
  const std::int64_t end = std::min(begin + micro_batch_size_, samples_.end);
  std::vector<std::int64_t> indices(end - begin);
  std::iota(indices.begin(), indices.end(), begin);
  Batch batch;
  batch.position = begin;
  batch.global_batch_size = dataset_->size();
  TROUPE_RETURN_IF_ERROR(
      FillAll(*dataset_, {{&batch, indices}}, workers_, *allocator_));
  return batch;
}

}  // namespace troupe::data
