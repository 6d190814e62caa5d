// Reads the samples of batches from a dataset, in place or ahead of the caller
// with threads, as the worker processes of PyTorch's DataLoader do.
//
//   BatchReader reader(dataset, allocator, /*threads=*/2);
//   std::shared_ptr<BatchRead> read = reader.Start(rank_batches.At(0));
//   absl::Status status = Block(read->done, absl::Minutes(5));
//   if (status.ok()) Use(read->batch);
//
// Each batch is read by one thread. With 0 threads Start() reads in place, and
// the read that it returns has ended. The caller bounds what is read ahead by
// the reads that it starts; the reader itself has no limit.
//
// Errors: those of the dataset, as the status of BatchRead::done; an exception
// that a dataset throws becomes kInternal.
// Threads: one at a time calls Start(). The destructor forgets the reads that
// no thread has begun, whose events never complete, and waits for the others.

#ifndef TROUPE_INTERNAL_BATCH_READER_H_
#define TROUPE_INTERNAL_BATCH_READER_H_

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/event.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "data/rank_batches.h"
#include "nn/tensor/allocator.h"

namespace troupe {

// A batch that is being read. `batch` may be read when `done` has completed
// without an error.
struct BatchRead {
  data::RankBatch samples;
  data::Batch batch;
  base::Event done = base::Event::Make();
};

class BatchReader {
 public:
  // `allocator` provides host memory, and outlives the reader. If the system
  // refuses some of the threads, the others do the work; if it refuses all,
  // Start() reads in place.
  BatchReader(data::DatasetPtr dataset, nn::Allocator& allocator, int threads);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Starts to read these samples, and returns the read.
  std::shared_ptr<BatchRead> Start(data::RankBatch samples);
  // Forgets the reads that no thread has begun: their events never complete.
  void Forget();

 private:
  void Work();
  absl::Status Read(const data::RankBatch& samples, data::Batch& batch) const;
  void Run(BatchRead& read) const;

  const data::DatasetPtr dataset_;
  nn::Allocator& allocator_;
  absl::Mutex mutex_;
  std::deque<std::shared_ptr<BatchRead>> queue_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// Blocks the calling thread until the event has completed, and returns its
// status.
//   kDeadlineExceeded: it has not within `timeout`.
absl::Status Block(const base::Event& event, absl::Duration timeout);

}  // namespace troupe

#endif  // TROUPE_INTERNAL_BATCH_READER_H_
