// A pool of the CUDA events of one device: in steady state no event is created
// or destroyed.
//
//   auto pool = std::make_shared<EventPool>(/*ordinal=*/0);
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const EventMark> mark,
//                           EventPool::Record(pool, stream));
//   event.SetOrigin(mark);
//   if (auto other_mark = EventMark::Of(other)) {
//     cudaStreamWaitEvent(stream, other_mark->event(), /*flags=*/0);
//   }
//
// A mark is one recording of one event. The event returns to the pool when the
// last handle of its mark is dropped, so a wait never waits for a later
// recording than the intended one.
//
// Threads: Record() from one thread at a time for each stream; marks may be
// dropped in any. Cost: a lock, and cudaEventRecord.

#ifndef NN_KERNELS_CUDA_DEVICE_EVENT_POOL_H_
#define NN_KERNELS_CUDA_DEVICE_EVENT_POOL_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/event.h"

namespace troupe::nn::cuda {

class EventMark;

class EventPool {
 public:
  explicit EventPool(int ordinal) : ordinal_(ordinal) {}
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // Records a free event, or a new one, on `stream`. The mark keeps the pool
  // alive. The device of the pool must be the current one.
  static absl::StatusOr<std::shared_ptr<const EventMark>> Record(
      const std::shared_ptr<EventPool>& pool, cudaStream_t stream);

  // Number of events created so far.
  std::int64_t created() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class EventMark;

  absl::StatusOr<cudaEvent_t> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(cudaEvent_t event) ABSL_LOCKS_EXCLUDED(mutex_);

  const int ordinal_;
  mutable absl::Mutex mutex_;
  std::vector<cudaEvent_t> free_ ABSL_GUARDED_BY(mutex_);
  std::int64_t created_ ABSL_GUARDED_BY(mutex_) = 0;
};

class EventMark final : public base::EventOrigin {
 public:
  EventMark(std::shared_ptr<EventPool> pool, cudaEvent_t event,
            cudaStream_t stream)
      : pool_(std::move(pool)), event_(event), stream_(stream) {}
  ~EventMark() override { pool_->GiveBack(event_); }
  EventMark(const EventMark&) = delete;
  EventMark& operator=(const EventMark&) = delete;

  // Returns the mark of `event`, or null if it is no CUDA event or is not yet
  // recorded.
  static std::shared_ptr<const EventMark> Of(const base::Event& event) {
    return std::dynamic_pointer_cast<const EventMark>(event.origin());
  }

  void Block() const override { cudaEventSynchronize(event_); }

  cudaEvent_t event() const { return event_; }
  // The stream on which the event was recorded.
  cudaStream_t stream() const { return stream_; }

 private:
  const std::shared_ptr<EventPool> pool_;
  const cudaEvent_t event_;
  const cudaStream_t stream_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_EVENT_POOL_H_
