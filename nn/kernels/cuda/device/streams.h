// The streams of one device, one for each queue (nn/kernels/device_queues.h).
//
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<Streams> streams,
//                           Streams::Create(/*ordinal=*/0));
//   cudaStream_t compute = streams->Of(Queue::kCompute);
//   TROUPE_RETURN_IF_ERROR(streams->Open(CommQueue(1)));
//
// No stream synchronizes with the null stream. Communication streams have the
// higher priority, because other ranks wait for them. The streams of kReadBack
// and of all communication queues but the first are created by Open(): a GPU
// runs few streams at once.
//
// Lifetime: shared by all objects that may still wait for a stream; the
// destructor waits for the work of the streams. Threads: any, one at a time for
// Open() and Of().

#ifndef NN_KERNELS_CUDA_DEVICE_STREAMS_H_
#define NN_KERNELS_CUDA_DEVICE_STREAMS_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "nn/kernels/device_queues.h"

namespace troupe::nn::cuda {

class Streams {
 public:
  // Makes `ordinal` the current device.
  static absl::StatusOr<std::shared_ptr<Streams>> Create(int ordinal);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  int ordinal() const { return ordinal_; }
  // Creates the queue's stream if it does not exist yet.
  absl::Status Open(Queue queue) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the queue's stream, or null if it is not open.
  cudaStream_t Of(Queue queue) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return streams_[static_cast<int>(queue)];
  }
  // Blocks until all work of all streams is done.
  void Finish() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit Streams(int ordinal) : ordinal_(ordinal) {}

  const int ordinal_;
  mutable absl::Mutex mutex_;
  cudaStream_t streams_[kNumQueues] ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_STREAMS_H_
