// Interface of a device that executes asynchronously: queues (as CUDA streams),
// events, and copies between its memory and the host's.
//
//   kernels.LinearForward(x, w, b, y);                  // enqueued in kCompute
//   base::Event ready = Record(kernels, Queue::kCompute);
//   comm.Start(collective, /*after=*/ready);            // needs y
//   Wait(kernels, Queue::kReadBack, ready);             // later copies need y
//   CopyBytes(kernels, Queue::kReadBack, y, host_y);
//   base::Event copied = Record(kernels, Queue::kReadBack);
//   status = Synchronize(kernels, copied);              // the host needs y
//
// Order: the work of one queue runs in the order of the calls; between queues,
// and between queues and collectives, only events impose an order. Kernels run
// on kCompute. Memory that a handle releases may be reused by the next tensor
// at once, since kernels run in order: so a tensor that another queue or a
// collective still uses must be kept, or kCompute must wait for that use first;
// and another queue that writes to fresh memory must first wait for all earlier
// work of kCompute.
//
// An optimizer runs after a reduction, on its queue:
//
//   Wait(kernels, Queue::kComm, last_reader);
//   {
//     QueueScope scope(kernels, Queue::kComm);
//     status = kernels.SgdUpdate(rule, scalars, grad, param, momentum);
//   }
//   base::Event updated = Record(kernels, Queue::kComm);
//
// In a scope, kernels run on its queue, and memory that is allocated is in the
// order of that queue: for work that begins and ends there.
//
// The queues of one kind of device recognise each other's events
// (base/event.h): waiting for one of them is an operation of the device. For
// any other event, the host holds back the waiting work until the event is
// done, without a waiting thread.
//
// A device that executes synchronously (the CPU) has no queues:
// Kernels::queues() is null, every event is done, and these functions cost a
// branch.
//
// Errors: after work that fails, every later event of its device completes with
// that status. Threads: the same as for the kernel set; events complete in the
// thread that runs Progress().

#ifndef NN_KERNELS_DEVICE_QUEUES_H_
#define NN_KERNELS_DEVICE_QUEUES_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event.h"
#include "nn/collectives.h"
#include "nn/kernels/device_graph.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

class Kernels;

// Queues of a device. kCopy copies inputs to the device, kReadBack results to
// the host: the next batch does not wait for the loss of this step. kComm is
// the first of kCommQueuesMax queues for communication: collectives of one
// queue run one after another, those of several queues concurrently.
enum class Queue { kCompute, kCopy, kReadBack, kComm };
inline constexpr int kCommQueuesMax = 4;
inline constexpr int kNumQueues = 3 + kCommQueuesMax;

// Returns the queue of an axis of the mesh; CommQueue(0) is kComm. Axes beyond
// the last queue share that one.
constexpr Queue CommQueue(int axis) {
  const int last = kCommQueuesMax - 1;
  return static_cast<Queue>(static_cast<int>(Queue::kComm) +
                            (axis < last ? axis : last));
}

// A reduction over the memory of several ranks, by one device that can access
// all of it: tree and roundings are those of comm/reduction/reduction_tree.h.
struct TreeReduction {
  ReduceOp op = ReduceOp::kSum;
  // Inputs by rank, of one length and dtype.
  std::vector<Tensor> sources;
  // Tensors that get the result; each is one of the sources, or overlaps none.
  std::vector<Tensor> destinations;
};

class DeviceQueues {
 public:
  virtual ~DeviceQueues() = default;

  // Returns an event that is done when all earlier work of `queue` is done.
  virtual base::Event Record(Queue queue) = 0;
  // Makes later work of `queue` wait until `event` is done.
  virtual void Wait(Queue queue, const base::Event& event) = 0;
  // Copies the bytes of `from` to `to`, which has the same number. Keeps a
  // handle of the host's tensor until the copy is done, and none of the
  // device's.
  virtual void CopyBytes(Queue queue, const Tensor& from, const Tensor& to) = 0;
  //   kUnimplemented: the device does not support it, or the dtype.
  virtual absl::Status Reduce(Queue queue, const TreeReduction& reduction);
  // Enqueues work of a library that enqueues to a stream by itself, such as
  // NCCL. In its turn, `work` is called in the device's thread, with the stream
  // of `queue` (a cudaStream_t). It returns false if it has not enqueued
  // everything: Progress() calls it again, and later work of the queue comes
  // after it. `work` handles its own errors.
  //   kUnimplemented: the device has no streams.
  virtual absl::Status Enqueue(Queue queue, const char* name,
                               std::function<bool(void* native_stream)> work);
  // Makes every Progress() call `look` until it returns false; a device that
  // watches ensures at least one call every 10 ms. It is for checks other than
  // work and its completion: time-outs, errors of a library.
  virtual void LookAfter(std::function<bool()> look);
  // Host memory that the device copies from and to.
  virtual Allocator& host_allocator() = 0;
  // Sets the queue on which kernels run, and in whose order
  // Kernels::allocator() gives memory; returns the previous one. See
  // QueueScope.
  virtual Queue SetKernelQueue(Queue queue) = 0;
  // Processes completed work. Returns false if there was nothing to do.
  virtual bool Progress() = 0;

  // Sets a function that is called when Progress() may find work after it found
  // none: from any thread; it must only set a flag and not block. With `watch`
  // a thread of the device looks for completions meanwhile; without it,
  // Progress() returns true as long as the device has work. No call of `wakeup`
  // is running any more when SetWakeup() or the destructor returns.
  //   kResourceExhausted: the thread could not be started.
  virtual absl::Status SetWakeup(std::function<void()> wakeup, bool watch);

  // Sets what Synchronize() calls to wait for an event, in place of Progress():
  // it returns when that is ready. So code on a fiber lets its strand go on,
  // whose peers may share the thread. Null: Synchronize() drives the device.
  void SetHostWait(std::function<void(const base::Event& event)> wait) {
    host_wait_ = std::move(wait);
  }
  const std::function<void(const base::Event& event)>& host_wait() const {
    return host_wait_;
  }

  // Starts a capture: until EndCapture(), kCompute and the communication queues
  // record their work and run none of it. Events recorded meanwhile order the
  // work within the capture; outside they have no meaning, and the end of the
  // capture completes them. Operations that involve the host cannot be
  // recorded: copies of its memory, kCopy, an event from elsewhere. They make
  // the capture fail, and later calls then fail at once.
  //   kUnimplemented: the device cannot record.
  //   kFailedPrecondition: a queue is held back now; a later call may succeed.
  virtual absl::Status BeginCapture();
  // Ends the capture. Returns the graph, or the first failure since
  // BeginCapture(). The device then runs work again as before.
  virtual absl::StatusOr<std::unique_ptr<DeviceGraph>> EndCapture();
  virtual bool capturing() const { return false; }
  // Makes the current capture fail.
  virtual void FailCapture(const absl::Status& /*why*/) {}

  // Returns the present moment of `queue`, for measuring; null if unavailable.
  virtual std::unique_ptr<DeviceMoment> Mark(Queue /*queue*/) {
    return nullptr;
  }

 private:
  std::function<void(const base::Event& event)> host_wait_;
};

// Makes kernels of the set run on `queue` during its lifetime. Scopes nest.
class QueueScope {
 public:
  QueueScope(Kernels& kernels, Queue queue);
  ~QueueScope();
  QueueScope(const QueueScope&) = delete;
  QueueScope& operator=(const QueueScope&) = delete;

 private:
  DeviceQueues* const queues_;  // null: synchronous device
  Queue before_ = Queue::kCompute;
};

// The same for any kernel set; one without queues executes synchronously.
base::Event Record(Kernels& kernels, Queue queue);
void CopyBytes(Kernels& kernels, Queue queue, const Tensor& from,
               const Tensor& to);
// Requires an event that is done, or that the device's queues or another thread
// will complete.
void Wait(Kernels& kernels, Queue queue, const base::Event& event);
// Returns an allocator of host memory for copies from and to the device: the
// set's own if the host may access its memory.
Allocator& HostAllocator(Kernels& kernels);
// Copies `tensor` to that memory. The copy may be read when the work of `queue`
// so far is done; until then `tensor` keeps its memory.
//   kResourceExhausted: no memory is left.
absl::StatusOr<Tensor> CopyToHost(Kernels& kernels, Queue queue,
                                  const Tensor& tensor);
// Copies `tensor`, which is the host's or another device's, to this device's
// memory: `queue` copies, and later kernels may read the result.
//   kResourceExhausted: no memory is left.
absl::StatusOr<Tensor> CopyToDevice(Kernels& kernels, Queue queue,
                                    const Tensor& tensor);
// Waits for the event, driving the device meanwhile; returns its status.
//   kFailedPrecondition: a capture is running; this call makes it fail.
absl::Status Synchronize(Kernels& kernels, const base::Event& event);

}  // namespace troupe::nn

#endif  // NN_KERNELS_DEVICE_QUEUES_H_
