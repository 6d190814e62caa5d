#include "troupe/loader.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/field_error.h"
#include "base/status_error.h"
#include "data/in_memory_dataset.h"
#include "nn/kernels/device_queues.h"
#include "nn/tensor/caching_allocator.h"
#include "troupe/internal/batch_reader.h"

namespace troupe {
namespace {

[[noreturn]] void RefuseOption(absl::string_view what) {
  throw base::StatusError(
      absl::InvalidArgumentError(absl::StrCat("DataLoader: ", what)));
}

void CheckInRange(absl::string_view name, int value, int min, int max) {
  if (min <= value && value <= max) return;
  RefuseOption(
      absl::StrCat(name, " (", value, ") must be from ", min, " to ", max));
}

data::RankBatches MakeBatches(const LoaderEnv& env,
                              const data::DatasetPtr& dataset,
                              const DataLoaderOptions& options) {
  if (env.context == nullptr) {
    RefuseOption("there is no context; set LoaderEnv::context");
  }
  if (dataset == nullptr) {
    RefuseOption("there is no dataset; pass one, such as TensorDataset(x, y)");
  }
  CheckInRange("workers", options.workers, 0, kLoaderWorkersMax);
  CheckInRange("prefetch_factor", options.prefetch_factor, 1,
               kPrefetchFactorMax);
  data::RankBatchesOptions batches;
  batches.dataset_size = dataset->size();
  batches.batch_size = options.batch_size;
  batches.rank = env.rank;
  batches.world = env.world;
  batches.seed = options.seed.value_or(env.seed);
  batches.shuffle = options.shuffle;
  batches.drop_last = options.drop_last;
  absl::StatusOr<data::RankBatches> made = data::RankBatches::Create(batches);
  if (!made.ok()) RefuseOption(made.status().message());
  return *std::move(made);
}

nn::Tensor OnDevice(nn::Context& ctx, const nn::Tensor& host) {
  nn::Kernels& kernels = ctx.kernels();
  if (kernels.queues() == nullptr) return host;
  return base::OrThrow(nn::CopyToDevice(kernels, nn::Queue::kCopy, host));
}

}  // namespace

DataLoader::DataLoader(const LoaderEnv& env, data::DatasetPtr dataset,
                       const DataLoaderOptions& options)
    : env_(env),
      dataset_(std::move(dataset)),
      options_(options),
      batches_(MakeBatches(env_, dataset_, options_)),
      own_memory_(std::make_unique<nn::CachingAllocator>()),
      reads_max_(env_.shares_thread
                     ? 0
                     : static_cast<std::size_t>(options_.workers *
                                                options_.prefetch_factor)),
      reader_(std::make_unique<BatchReader>(
          dataset_, env_.allocator != nullptr ? *env_.allocator : *own_memory_,
          reads_max_ == 0 ? 0 : options_.workers)) {}

DataLoader::~DataLoader() = default;

void DataLoader::SetEpoch(std::int64_t epoch) {
  if (epoch < 0 || epoch > INT64_C(0xffffffff)) {
    RefuseOption(absl::StrCat("epoch ", epoch, " must be from 0 to 2^32 - 1"));
  }
  epoch_ = epoch;
}

DataLoader::Iterator DataLoader::begin() {
  RestartAt(0);
  batches_.SetEpoch(epoch_++);
  ++pass_;
  ReadAhead();
  return Iterator(this, pass_);
}

void DataLoader::RestartAt(std::int64_t number) {
  reader_->Forget();
  reads_.clear();
  next_read_ = number;
}

void DataLoader::ReadAhead() {
  while (reads_.size() < reads_max_ && next_read_ < size()) {
    reads_.push_back(reader_->Start(batches_.At(next_read_++)));
  }
}

absl::Status DataLoader::Await(const base::Event& done) const {
  if (done.ready()) return done.status();
  if (env_.await != nullptr) return env_.await(done);
  return Block(done, options_.timeout);
}

LoadedBatch DataLoader::Take(std::int64_t pass, std::int64_t number) {
  if (pass != pass_) {
    throw base::StatusError(absl::FailedPreconditionError(
        "DataLoader: another pass over the loader has begun since this one; "
        "finish a pass first, or use a loader for each"));
  }
  if (reads_.empty()) {
    reads_.push_back(reader_->Start(batches_.At(next_read_++)));
  }
  const std::shared_ptr<BatchRead> read = std::move(reads_.front());
  reads_.pop_front();
  const absl::Status status = Await(read->done);
  if (!status.ok()) {
    RestartAt(number);
    throw base::StatusError(base::WithMessage(
        status, absl::StrCat("DataLoader of rank ", env_.rank, ", epoch ",
                             read->samples.epoch, ", batch ", number, ": ",
                             status.message())));
  }
  ReadAhead();  // while the loop computes
  return ToDevice(*read);
}

LoadedBatch DataLoader::ToDevice(const BatchRead& read) {
  nn::Context& ctx = *env_.context;
  if (std::optional<nn::StepPosition> position = ctx.random()) {
    position->sample = read.batch.position;
    ctx.set_random(*position);
  }
  return {nn::Var(ctx, OnDevice(ctx, read.batch.inputs)),
          nn::Var(ctx, OnDevice(ctx, read.batch.targets))};
}

LoadedBatch DataLoader::Iterator::operator*() {
  if (!loaded_) loaded_ = loader_->Take(pass_, number_);
  return *loaded_;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  if (!loaded_) loader_->Take(pass_, number_);
  loaded_.reset();
  ++number_;
  return *this;
}

data::DatasetPtr TensorDataset(nn::Tensor inputs, nn::Tensor targets,
                               std::int64_t num_classes) {
  absl::StatusOr<data::DatasetPtr> dataset = data::MakeInMemoryDataset(
      std::move(inputs), std::move(targets), num_classes);
  if (dataset.ok()) return *std::move(dataset);
  throw base::StatusError(base::WithMessage(
      dataset.status(),
      absl::StrCat("TensorDataset: ", dataset.status().message())));
}

}  // namespace troupe
