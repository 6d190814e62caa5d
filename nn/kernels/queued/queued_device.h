// A device that exists only in tests. It runs work later, on several queues, in
// an order that a seed chooses among all that events permit, in memory that the
// host may not access. Code with a missing wait computes other bits under some
// seed, as it would some day on a GPU.
//
//   auto device = QueuedDevice::Create(memory, /*seed=*/7);
//   device->Enqueue(Queue::kCompute, [] { return Work(); });
//   base::Event done = device->Record(Queue::kCompute);
//   while (!done.ready()) device->Progress();       // one piece of work
//
// Memory: each queue has its own pool. A block that is released is handed out
// again at once, as by a caching allocator of a GPU, and is filled with NaNs
// (bytes 0xff) when its queue reaches the point where it was released.
//
// Lifetime: work that has not run when the last handle and storage are gone is
// dropped. Threads: any; Progress() runs in one at a time, and returns false in
// the others.

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
#include "nn/kernels/device_wakeup.h"
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

  // Adds work, which accesses guarded memory by address and holds no storage of
  // it.
  void Enqueue(Queue queue, Work work) ABSL_LOCKS_EXCLUDED(mutex_);

  base::Event Record(Queue queue) override;
  void Wait(Queue queue, const base::Event& event) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CopyBytes(Queue queue, const Tensor& from, const Tensor& to) override;
  // Runs one piece of work. Returns false if there is none, or if all waits for
  // events of others.
  bool Progress() override ABSL_LOCKS_EXCLUDED(mutex_);
  // Events that queues wait for call it; there is nothing to watch.
  absl::Status SetWakeup(std::function<void()> wakeup, bool) override {
    wakeup_->Set(std::move(wakeup));
    return absl::OkStatus();
  }

  Allocator& host_allocator() override { return host_; }
  Queue SetKernelQueue(Queue queue) override {
    return std::exchange(kernel_queue_, queue);
  }

  // Queue that kernels are enqueued on.
  Queue kernel_queue() const { return kernel_queue_; }
  // Returns the allocator whose memory is in the order of `queue`.
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

  // One entry of a queue. A wait has neither work nor an event to complete.
  struct Item {
    Work work;
    base::Event completes;
    base::Event waits_for;
  };

  QueuedDevice(std::shared_ptr<GuardedMemory> memory, std::uint64_t seed);

  void Push(Queue queue, Item item) ABSL_LOCKS_EXCLUDED(mutex_);
  void PushLocked(Queue queue, Item item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the queue to run next; -1: none can.
  int Choose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::uint64_t Draw(std::uint64_t below) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Run(const Item& item) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<GuardedMemory> memory_;
  const std::shared_ptr<DeviceWakeup> wakeup_ =
      std::make_shared<DeviceWakeup>();
  CachingAllocator host_;
  Queue kernel_queue_ = Queue::kCompute;
  Pool pools_[kNumQueues];
  mutable absl::Mutex mutex_;
  std::deque<Item> queues_[kNumQueues] ABSL_GUARDED_BY(mutex_);
  // number of queues in use, the first ones
  int used_ ABSL_GUARDED_BY(mutex_) = 1;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  // error of the first failed work
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t random_ ABSL_GUARDED_BY(mutex_);
  int favourite_ ABSL_GUARDED_BY(mutex_) = 0;
  // Reference to itself, which keeps the device while tensors use its memory.
  std::int64_t live_ ABSL_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<QueuedDevice> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_QUEUED_QUEUED_DEVICE_H_
