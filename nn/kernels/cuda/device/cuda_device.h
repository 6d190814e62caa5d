// One GPU as a rank has it: streams, events, memory, and the copies between it
// and the host (nn/kernels/device_queues.h says what they promise).
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<CudaDevice> device,
//                           CudaDevice::Open(/*ordinal=*/0));
//   TROUPE_ASSIGN_OR_RETURN(Tensor x, Tensor::Create({1024}, DType::kF32,
//                                                    device->allocator()));
//   device->CopyBytes(Queue::kCopy, host_x, x);
//   base::Event copied = device->Record(Queue::kCopy);
//   device->Wait(Queue::kCompute, copied);        // the stream waits
//   status = device->Give(Queue::kCompute, "Scale",
//                         [=] { return LaunchScale(stream, x); });
//
// How it keeps the host from waiting:
//
//     a wait for an event of CUDA's   cudaStreamWaitEvent, between any devices
//     ... for another event           the queue is held (stream_queue.h)
//     an event's completion           polled by Progress(); a Watcher wakes the
//                                     strand when there is one
//     a copy from or to memory that   goes by way of pinned memory; what is
//       is not pinned                 copied to the GPU is read in the call
//     memory                          cached, in the compute stream's order; a
//                                     communication stream has a cache of its
//                                     own, for what updates need for themselves
//     a step that comes again         recorded once, launched (cuda_graph.h)
//
// In steady state, when all sizes have been seen, it takes no memory from the
// driver and creates no events.
//
// Errors. A CUDA call that fails ends the device: every later event, and the
// call of every later op, has one status, with what was in flight. Where data
// was wrong (a row outside a table, say), kernels leave a note (data_error.h)
// that the host sees when an event completes; the device goes on, and later
// events have that status.
//
// Threads: one at a time, which alone gives it work; memory may be released in
// any. Lifetime: tensors may outlive it. Close(), or the destructor, waits for
// what runs, and drops what is held: those events complete with kCancelled.

#ifndef NN_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_
#define NN_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "nn/kernels/cuda/device/cuda_graph.h"
#include "nn/kernels/cuda/device/device_memory.h"
#include "nn/kernels/cuda/device/event_pool.h"
#include "nn/kernels/cuda/device/pool_switch.h"
#include "nn/kernels/cuda/device/stream_queue.h"
#include "nn/kernels/cuda/device/streams.h"
#include "nn/kernels/cuda/device/watcher.h"
#include "nn/kernels/cuda/kernel_parts/data_error.h"
#include "nn/kernels/device_queues.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::nn::cuda {

class CudaDevice final : public DeviceQueues {
 public:
  //   kUnavailable: no driver, or no such GPU: says how many there are.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(int ordinal);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  // What its work refers to may go then. It takes no more work.
  void Close();

  int ordinal() const { return streams_->ordinal(); }
  cudaStream_t stream(Queue queue) const { return streams_->Of(queue); }
  // Memory in the order of the compute stream.
  Allocator& allocator() { return memory_.memory; }
  // Memory in the order of what kernels are given to `queue`.
  Allocator& allocator(Queue queue) { return PoolOf(queue).memory; }
  const EventPool& events() const { return *events_; }

  // Whether work may be enqueued to the queue's stream right now, in this
  // thread, whose device this then is; it goes by `name`, a literal. Otherwise
  // it must come through Give().
  bool TakesNow(Queue queue, const char* name);
  // Runs `work`, which enqueues to the queue's stream, now or later. Returns
  // its status where it ran; later that comes with events.
  absl::Status Give(Queue queue, const char* name, StreamQueue::Work work);
  // Ends the device with the status of a CUDA call, unless that is ok. Returns
  // the device's status.
  absl::Status Check(const absl::Status& status);
  // Where kernels of the queue's stream note what is wrong with data.
  DataError* data_error(Queue queue) const {
    return static_cast<DataError*>(data_errors_->data()) +
           static_cast<int>(queue);
  }
  // Where calls of kernels are to go.
  Queue kernel_queue() const { return kernel_queue_; }
  // The first failure's.
  const absl::Status& status() const { return status_; }

  base::Event Record(Queue queue) override;
  void Wait(Queue queue, const base::Event& event) override;
  void CopyBytes(Queue queue, const Tensor& from, const Tensor& to) override;
  absl::Status Reduce(Queue queue, const TreeReduction& reduction) override;
  absl::Status Enqueue(Queue queue, const char* name,
                       std::function<bool(void* native_stream)> work) override;
  void LookAfter(std::function<bool()> look) override;
  Allocator& host_allocator() override { return host_; }
  Queue SetKernelQueue(Queue queue) override {
    return std::exchange(kernel_queue_, queue);
  }
  bool Progress() override;
  absl::Status SetWakeup(std::function<void()> wakeup, bool watch) override;

  // Graphs, in device_capture.cc.
  absl::Status BeginCapture() override;
  absl::StatusOr<std::unique_ptr<DeviceGraph>> EndCapture() override;
  bool capturing() const override { return capture_ != nullptr; }
  void FailCapture(const absl::Status& why) override;
  std::unique_ptr<DeviceMoment> Mark(Queue queue) override;

 private:
  class Graph;
  // The memory of tensors that kernels of one queue use.
  struct QueuePool {
    QueuePool(int ordinal, std::shared_ptr<MemorySource> source);
    CachingAllocator own;
    PoolSwitch memory{&own};
  };
  // Called by whoever makes an event known that holds a queue; outlives the
  // device with such an event.
  struct Wakeup {
    absl::Mutex mutex;
    std::function<void()> call ABSL_GUARDED_BY(mutex);

    void Call() ABSL_LOCKS_EXCLUDED(mutex);
  };

  explicit CudaDevice(std::shared_ptr<Streams> streams);
  absl::Status Init();

  void MakeCurrent();
  // Why a capture that is going on takes no work for `queue`.
  absl::Status MayRecord(Queue queue);
  // Makes the queue on its first use. False: the device takes no more work.
  bool OpenQueue(Queue queue);
  void AddQueue(Queue queue);
  QueuePool& PoolOf(Queue queue) {
    return queue < Queue::kComm ? memory_
                                : *comm_memory_[static_cast<int>(queue) -
                                                static_cast<int>(Queue::kComm)];
  }
  StreamQueue& Of(Queue queue) { return *queues_[static_cast<int>(queue)]; }
  // A copy of which neither side is pageable.
  absl::Status Copy(Queue queue, const Tensor& from, const Tensor& to);
  bool IsPageable(const Tensor& tensor) const;
  absl::StatusOr<Tensor> Stage(const Tensor& like);
  // Lets this GPU reach the memory of another one.
  absl::Status ReachPeer(int ordinal);
  // Completes the oldest recording, where it is done.
  absl::StatusOr<bool> CompleteOldest(StreamQueue& queue);
  // Completes what is done; tells whether there was any.
  bool CompleteWhatIsDone();
  // Calls what looks after something, and forgets what is content.
  void LookAround();
  // After how long Progress() is to be called, whatever completes.
  absl::Duration PauseMax() const;
  absl::Status Launch(const std::shared_ptr<GraphExecutable>& graph);
  // Nothing can be held in a capture: calls `work` until it is done.
  absl::Status EnqueueInCapture(Queue queue, const char* name,
                                const std::function<bool(void*)>& work);
  // What was given to the communication queues and not yet joined comes before
  // what kCompute is given from now on.
  void JoinQueues();
  // False while a note of wrong data is being written, by kernels of `queue`,
  // or of any.
  absl::StatusOr<bool> ReadNote(Queue queue);
  absl::StatusOr<bool> ReadNotes();
  // After an error nothing is done any more: what was asked for ends with it.
  void CompleteAll();
  void DropHeld(const absl::Status& status);

  const std::shared_ptr<Streams> streams_;
  const std::shared_ptr<EventPool> events_;
  const std::shared_ptr<PinnedMemory> pinned_;
  const std::shared_ptr<DeviceMemory> source_;
  QueuePool memory_;
  std::vector<std::unique_ptr<QueuePool>> comm_memory_;
  CachingAllocator host_;
  absl::Status status_;
  bool broken_ = false;  // by a CUDA call
  std::optional<StreamQueue> queues_[kNumQueues];
  std::vector<Queue> open_;  // those that are there; never moves
  Queue kernel_queue_ = Queue::kCompute;
  std::unique_ptr<GraphCapture> capture_;  // null: none is going on
  std::uint64_t joined_[kNumQueues] = {};  // StreamQueue::given()
  std::vector<int> reached_;               // other GPUs
  std::vector<std::function<bool()>> looks_;
  StoragePtr data_errors_;  // by queue
  // Where a queue's note of a data error is complete; null: none was seen.
  std::shared_ptr<const EventMark> noted_[kNumQueues];
  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();
  std::unique_ptr<Watcher> watcher_;  // null: nobody watches
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_
