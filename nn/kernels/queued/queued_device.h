// A device that exists only in tests. It runs what it is given later, on
// several queues, in an order that a seed chooses among all that events permit,
// in memory that the host may not touch. What forgets to wait for something
// computes other bits under some seed, as it would some day on a GPU.
//
//   auto device = QueuedDevice::Create(memory, /*seed=*/7);
//   device->Enqueue(Queue::kCompute, [] { return Work(); });
//   base::Event done = device->Record(Queue::kCompute);
//   while (!done.ready()) device->Progress();       // one piece of work
//
// Memory: each queue has its own. A block that is released is handed out again
// at once, as a caching allocator of a GPU does, and is filled with NaNs (bytes
// 0xff) when its queue comes to the place where it was released.
//
// Lifetime: what it has not run when its last handle and storage go is dropped.
// Threads: any; Progress() runs in one at a time, the others' answers false.

#ifndef NN_KERNELS_QUEUED_QUEUED_DEVICE_H_
#define NN_KERNELS_QUEUED_QUEUED_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/event.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/queued/guarded_memory.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::nn {

class QueuedDevice final : public DeviceQueues,
                           public std::enable_shared_from_this<QueuedDevice> {
 public:
  using Work = std::function<absl::Status()>;

  static std::shared_ptr<QueuedDevice> Create(
      std::shared_ptr<GuardedMemory> memory, std::uint64_t seed);
  ~QueuedDevice() override;

  // `work` touches guarded memory by address, and holds no storage of it.
  void Enqueue(Queue queue, Work work) ABSL_LOCKS_EXCLUDED(mutex_);

  base::Event Record(Queue queue) override;
  void Wait(Queue queue, const base::Event& event) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CopyBytes(Queue queue, const Tensor& from, const Tensor& to) override;
  // Runs one piece of work. False: there is none, or it waits for events that
  // are not this device's to complete.
  bool Progress() override ABSL_LOCKS_EXCLUDED(mutex_);

  Allocator& host_allocator() override { return host_; }
  Queue SetKernelQueue(Queue queue) override {
    return std::exchange(kernel_queue_, queue);
  }

  // Where calls of kernels are to go.
  Queue kernel_queue() const { return kernel_queue_; }
  // Memory in the order of `queue`.
  Allocator& allocator(Queue queue) { return pools_[static_cast<int>(queue)]; }

 private:
  // The memory of one queue.
  class Pool final : public Allocator, private StorageOwner {
   public:
    Device device() const override { return {DeviceType::kQueued, 0}; }
    absl::StatusOr<StoragePtr> Allocate(std::size_t bytes) override;
    void ReleaseCached() override;
    Stats stats() const override;

   private:
    friend class QueuedDevice;
    void Recycle(Storage* storage) override;

    QueuedDevice* device_ = nullptr;
    Queue queue_ = Queue::kCompute;
    // Guarded by the mutex of the device.
    Stats stats_;
    std::map<std::size_t, std::vector<Storage*>> free_;
  };

  // What a queue is given. A wait has neither work nor an event of its own.
  struct Item {
    Work work;
    base::Event completes;
    base::Event waits_for;
  };

  QueuedDevice(std::shared_ptr<GuardedMemory> memory, std::uint64_t seed);

  void Push(Queue queue, Item item) ABSL_LOCKS_EXCLUDED(mutex_);
  void PushLocked(Queue queue, Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The queue to go on with; -1: none can.
  int Choose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::uint64_t Draw(std::uint64_t below) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Run(const Item& item) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<GuardedMemory> memory_;
  CachingAllocator host_;
  Queue kernel_queue_ = Queue::kCompute;
  Pool pools_[kNumQueues];
  mutable absl::Mutex mutex_;
  std::deque<Item> queues_[kNumQueues] ABSL_GUARDED_BY(mutex_);
  int used_ ABSL_GUARDED_BY(mutex_) = 1;  // of queues_, the first ones
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // of the first failed work
  std::uint64_t random_ ABSL_GUARDED_BY(mutex_);
  int favourite_ ABSL_GUARDED_BY(mutex_) = 0;
  // Keeps the device while a tensor lies in its memory.
  std::int64_t live_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<QueuedDevice> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_QUEUED_QUEUED_DEVICE_H_
