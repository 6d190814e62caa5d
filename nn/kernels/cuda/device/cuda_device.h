// The GPU of a rank: its streams, events and memory, and copies between it and
// the host. It implements the interface of nn/kernels/device_queues.h.
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
// Means by which the host does not wait:
//
//     a wait for a CUDA event         cudaStreamWaitEvent, between any devices
//     a wait for another event        holds the queue (stream_queue.h)
//     completion of an event          polled by Progress(); a Watcher wakes the
//                                     strand when an event may have completed
//     a copy from or to memory that   is staged in pinned memory; the source of
//       is not pinned                 a copy to the GPU is read in the call
//     memory                          cached in the order of the compute
//                                     stream; each communication stream has its
//                                     own cache, for the scratch of updates
//     a repeated step                 recorded once, launched (cuda_graph.h)
//
// In steady state, after every size has occurred once, it takes no memory from
// the driver and creates no events.
//
// Errors. A CUDA call that fails ends the device: every later event and op has
// the same status, which names the work in flight. For wrong data (say, an
// index outside a table), kernels write a note (data_error.h) that the host
// reads when an event completes; the device continues, and later events have
// the status of the note.
//
// Threads: one thread at a time may use it; memory may be released in any.
// Lifetime: tensors may outlive it. Close(), or the destructor, waits for work
// that runs and drops work that is held: its events complete with kCancelled.

#ifndef NN_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_
#define NN_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nn/kernels/cuda/device/cuda_graph.h"
#include "nn/kernels/cuda/device/data_notes.h"
#include "nn/kernels/cuda/device/device_pools.h"
#include "nn/kernels/cuda/device/event_pool.h"
#include "nn/kernels/cuda/device/open_queues.h"
#include "nn/kernels/cuda/device/peer_access.h"
#include "nn/kernels/cuda/device/stream_queue.h"
#include "nn/kernels/cuda/device/streams.h"
#include "nn/kernels/cuda/device/watcher.h"
#include "nn/kernels/cuda/kernel_parts/data_error.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/device_wakeup.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

class CudaDevice final : public DeviceQueues {
 public:
  //   kUnavailable: no driver, or no such GPU; names the number of GPUs.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(int ordinal);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  // Waits for the work that runs and cancels the rest; the objects that work
  // refers to may be destroyed afterwards. The device takes no more work.
  void Close();

  int ordinal() const { return streams_->ordinal(); }
  cudaStream_t stream(Queue queue) const { return streams_->Of(queue); }
  // Memory in the order of the compute stream.
  Allocator& allocator() { return pools_.Of(Queue::kCompute); }
  // Memory in the order of the kernels of `queue`.
  Allocator& allocator(Queue queue) { return pools_.Of(queue); }
  const EventPool& events() const { return *events_; }

  // Returns whether the caller may enqueue work to the queue's stream at once;
  // if so, makes this the thread's current device and notes the work as `name`,
  // a literal. Otherwise the work must be passed to Give().
  bool TakesNow(Queue queue, const char* name);
  // Runs `work`, which enqueues to the queue's stream, at once or, if the queue
  // is held, later. Returns the status of work that ran at once; an error of
  // later work becomes the status of events.
  absl::Status Give(Queue queue, const char* name, StreamQueue::Work work);
  // Ends the device with the status of a CUDA call, unless that is ok; during a
  // capture, ends the capture instead. Returns the resulting status.
  absl::Status Check(const absl::Status& status);
  // The record in which kernels of the queue's stream note wrong data.
  DataError* data_error(Queue queue) const { return notes_.Of(queue); }
  // The queue to which calls of kernels enqueue.
  Queue kernel_queue() const { return kernel_queue_; }
  // The status of the first failure.
  const absl::Status& status() const { return status_; }

  base::Event Record(Queue queue) override;
  void Wait(Queue queue, const base::Event& event) override;
  void CopyBytes(Queue queue, const Tensor& from, const Tensor& to) override;
  absl::Status Reduce(Queue queue, const TreeReduction& reduction) override;
  absl::Status Enqueue(Queue queue, const char* name,
                       std::function<bool(void* native_stream)> work) override;
  void LookAfter(std::function<bool()> look) override;
  Allocator& host_allocator() override { return pools_.host(); }
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
  explicit CudaDevice(std::shared_ptr<Streams> streams);

  void MakeCurrent();
  // Returns an error if a capture is in progress that cannot record work of
  // `queue`.
  absl::Status MayRecord(Queue queue);
  // Creates the queue on its first use. Returns false if the device takes no
  // more work.
  bool OpenQueue(Queue queue);
  StreamQueue& Of(Queue queue) { return queues_.Of(queue); }
  // Enqueues a copy; neither side may be pageable memory.
  absl::Status Copy(Queue queue, const Tensor& from, const Tensor& to);
  // Completes the queue's oldest recording if it is done, and returns whether
  // it was.
  absl::StatusOr<bool> CompleteOldest(StreamQueue& queue);
  // Completes all recordings that are done; returns whether there were any.
  bool CompleteWhatIsDone();
  // Calls the functions of LookAfter() and forgets those that return false.
  void LookAround();
  // Returns the time after which Progress() must be called even if no event
  // completes.
  absl::Duration PauseMax() const;
  absl::Status Launch(const std::shared_ptr<GraphExecutable>& graph);
  // Calls `work` until it returns true, because a capture cannot hold work.
  absl::Status EnqueueInCapture(Queue queue, const char* name,
                                const std::function<bool(void*)>& work);
  // Makes later work of kCompute wait for the work that communication queues
  // were given since the last call.
  void JoinQueues();
  // Reads the notes of wrong data of all queues into status_. Returns false
  // while a kernel may still be writing a note.
  absl::StatusOr<bool> ReadNotes();

  const std::shared_ptr<Streams> streams_;
  const std::shared_ptr<EventPool> events_;
  DevicePools pools_;
  absl::Status status_;
  bool broken_ = false;  // a CUDA call failed, or the device is closed
  OpenQueues queues_;
  Queue kernel_queue_ = Queue::kCompute;
  std::unique_ptr<GraphCapture> capture_;  // null: no capture in progress
  std::uint64_t joined_[kNumQueues] = {};  // StreamQueue::given() at the join
  PeerAccess peers_;
  std::vector<std::function<bool()>> looks_;
  DataNotes notes_;
  // Called by an event that becomes ready or recorded, if a queue waits for it.
  const std::shared_ptr<DeviceWakeup> wakeup_ =
      std::make_shared<DeviceWakeup>();
  std::unique_ptr<Watcher> watcher_;  // null: the caller polls Progress()
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_CUDA_DEVICE_H_
