#include "troupe/internal/batch_reader.h"

#include <cstdint>
#include <exception>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/check.h"
#include "base/exception_text.h"
#include "nn/tensor/tensor.h"

namespace troupe {

BatchReader::BatchReader(data::DatasetPtr dataset, nn::Allocator& allocator,
                         int threads)
    : dataset_(std::move(dataset)), allocator_(allocator) {
  TROUPE_CHECK(dataset_ != nullptr, "a reader has a dataset");
  for (int i = 0; i < threads; ++i) {
    try {
      threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {
      return;
    }
  }
}

BatchReader::~BatchReader() {
  {
    absl::MutexLock lock(&mutex_);
    ends_ = true;
    queue_.clear();
  }
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<BatchRead> BatchReader::Start(data::RankBatch samples) {
  auto read = std::make_shared<BatchRead>();
  read->samples = std::move(samples);
  if (threads_.empty()) {
    Run(*read);
    return read;
  }
  absl::MutexLock lock(&mutex_);
  queue_.push_back(read);
  return read;
}

void BatchReader::Forget() {
  absl::MutexLock lock(&mutex_);
  queue_.clear();
}

void BatchReader::Work() {
  while (true) {
    std::shared_ptr<BatchRead> next;
    {
      const auto has_news = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return ends_ || !queue_.empty();
      };
      absl::MutexLock lock(&mutex_, absl::Condition(&has_news));
      if (ends_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    Run(*next);
  }
}

void BatchReader::Run(BatchRead& read) const {
  absl::Status status;
  try {
    status = Read(read.samples, read.batch);
  } catch (...) {
    status = absl::InternalError(absl::StrCat(
        "the dataset threw: ", base::ExceptionText(std::current_exception())));
  }
  read.done.Complete(status);
}

absl::Status BatchReader::Read(const data::RankBatch& samples,
                               data::Batch& batch) const {
  const data::SampleSpec& spec = dataset_->spec();
  const auto size = static_cast<std::int64_t>(samples.indices.size());
  TROUPE_ASSIGN_OR_RETURN(
      batch.inputs,
      nn::Tensor::Create(spec.InputShape(size), spec.input_dtype, allocator_));
  TROUPE_ASSIGN_OR_RETURN(batch.targets,
                          nn::Tensor::Create(spec.TargetShape(size),
                                             spec.target_dtype, allocator_));
  batch.epoch = samples.epoch;
  batch.position = samples.position;
  batch.global_batch_size = samples.global_batch_size;
  return dataset_->Fill(samples.indices, samples.epoch, batch.inputs,
                        batch.targets);
}

absl::Status Block(const base::Event& event, absl::Duration timeout) {
  if (event.ready()) return event.status();
  // Shared, since the event may complete after the time-out.
  auto done = std::make_shared<absl::Notification>();
  event.OnReady([done](const absl::Status&) { done->Notify(); });
  if (done->WaitForNotificationWithTimeout(timeout)) return event.status();
  return absl::DeadlineExceededError(absl::StrCat(
      "it took longer than ", absl::FormatDuration(timeout),
      "; raise DataLoaderOptions::timeout, or the number of workers"));
}

}  // namespace troupe
