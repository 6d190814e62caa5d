// What a device that works later than it is told offers beside its kernels:
// queues, events, and copies between its memory and the host's.
//
//   kernels.LinearForward(x, w, b, y);                  // enqueued in kCompute
//   base::Event ready = Record(kernels, Queue::kCompute);
//   comm.Start(collective, /*after=*/ready);            // needs y
//   Wait(kernels, Queue::kReadBack, ready);             // later copies need y
//   CopyBytes(kernels, Queue::kReadBack, y, host_y);
//   base::Event copied = Record(kernels, Queue::kReadBack);
//   status = Synchronize(kernels, copied);              // the host needs y
//
// Order: what one queue was given runs in that order; between queues, and
// between queues and collectives, only events make an order. Kernels go to
// kCompute. Memory that a handle gives back may be given to the next tensor at
// once, since kernels are in order: a tensor that another queue or a collective
// still uses is kept, or kCompute waits for that use first; and another queue
// that writes to fresh memory waits first for what kCompute was given so far.
//
// An optimizer runs behind a reduction, on its queue:
//
//   Wait(kernels, Queue::kComm, last_reader);
//   {
//     QueueScope scope(kernels, Queue::kComm);
//     status = kernels.SgdUpdate(rule, scalars, grad, param, momentum);
//   }
//   base::Event updated = Record(kernels, Queue::kComm);
//
// In a scope, kernels go to its queue, and memory that is allocated is in the
// order of that queue: for what begins and ends there.
//
// The queues of one kind of device know each other's events (base/event.h): a
// wait for one of these is the device's own. What waits for any other event is
// held back by the host until that is done, without a thread that waits.
//
// A device that works at once (the CPU) has no queues: Kernels::queues() is
// null, every event is done, and all of this costs a branch.
//
// Errors: work that fails makes every later event of its device complete with
// that status. Threads: as the kernel set's; events complete in the thread that
// is in Progress().

#ifndef NN_KERNELS_DEVICE_QUEUES_H_
#define NN_KERNELS_DEVICE_QUEUES_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/event.h"
#include "nn/collectives.h"
#include "nn/kernels/device_graph.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

class Kernels;

// kCopy brings what the device needs, kReadBack what the host wants to see: the
// next batch does not wait for the loss of this step. kComm is the first of
// kCommQueuesMax queues for communication: collectives of one queue follow each
// other, those of several run side by side.
enum class Queue { kCompute, kCopy, kReadBack, kComm };
inline constexpr int kCommQueuesMax = 4;
inline constexpr int kNumQueues = 3 + kCommQueuesMax;

// The queue of an axis of the mesh; CommQueue(0) is kComm. Axes beyond the last
// queue share that one.
constexpr Queue CommQueue(int axis) {
  const int last = kCommQueuesMax - 1;
  return static_cast<Queue>(static_cast<int>(Queue::kComm) +
                            (axis < last ? axis : last));
}

// A reduction over the memory of several ranks, by one device that reaches them
// all: tree and roundings are those of comm/reduction_tree.h.
struct TreeReduction {
  ReduceOp op = ReduceOp::kSum;
  // By rank; each as long as the others, of one dtype.
  std::vector<Tensor> sources;
  // Which get the result; one of the sources, or apart from all.
  std::vector<Tensor> destinations;
};

class DeviceQueues {
 public:
  virtual ~DeviceQueues() = default;

  // Done when all that `queue` was given so far is done.
  virtual base::Event Record(Queue queue) = 0;
  // What `queue` is given from now on begins when `event` is done.
  virtual void Wait(Queue queue, const base::Event& event) = 0;
  // The bytes of `from` into `to`, which has as many. Keeps a handle of the
  // host's side until the copy is done, and none of the device's.
  virtual void CopyBytes(Queue queue, const Tensor& from, const Tensor& to) = 0;
  //   kUnimplemented: the device lacks it, or the dtype.
  virtual absl::Status Reduce(Queue queue, const TreeReduction& reduction);
  // Work of a library that enqueues to a stream by itself, such as NCCL. When
  // its turn comes, `work` is called in the device's thread, with the stream of
  // `queue` (a cudaStream_t). Where it answers false it has not enqueued all:
  // Progress() calls it again, and what the queue is given meanwhile comes
  // after it. What it fails with is its own affair.
  //   kUnimplemented: the device has no streams.
  virtual absl::Status Enqueue(Queue queue, const char* name,
                               std::function<bool(void* native_stream)> work);
  // Every Progress() calls `look` until it answers false; a device that watches
  // sees to it that this is every 10 ms at least. For what is neither work nor
  // its completion: time-outs, errors of a library.
  virtual void LookAfter(std::function<bool()> look);
  // Memory of the host that the device copies from and to.
  virtual Allocator& host_allocator() = 0;
  // Where calls of kernels go from now on, and in which order the memory is
  // that Kernels::allocator() gives; returns where they went. See QueueScope.
  virtual Queue SetKernelQueue(Queue queue) = 0;
  // Brings completions to the host. False where there is nothing to be done.
  virtual bool Progress() = 0;

  // `wakeup` is called when Progress() may find something after it found
  // nothing: from any thread; it leaves a note and does not block. With `watch`
  // a thread of the device's own looks for completions meanwhile; without it,
  // Progress() is true as long as the device has work. None is running any more
  // when SetWakeup() or the destructor returns.
  //   kResourceExhausted: that thread was refused.
  virtual absl::Status SetWakeup(std::function<void()> wakeup, bool watch);

  // From here to EndCapture() kCompute and the communication queues record
  // what they are given and run nothing of it. Events recorded meanwhile order
  // the work within; outside they mean nothing: the end of the capture
  // completes them. What the host would have to do or wait for cannot be
  // recorded: copies of its memory, kCopy, an event from elsewhere. Such a call
  // makes the capture fail, and what comes after it fails at once.
  //   kUnimplemented: the device records nothing.
  //   kFailedPrecondition: a queue is held; another time it may not be.
  virtual absl::Status BeginCapture();
  // The first failure since BeginCapture(), with nothing recorded, or the
  // graph. The device goes on as before either way.
  virtual absl::StatusOr<std::unique_ptr<DeviceGraph>> EndCapture();
  virtual bool capturing() const { return false; }
  // Makes the capture that is going on fail.
  virtual void FailCapture(const absl::Status& /*why*/) {}

  // Where `queue` is now, for measuring; null where that is not to be known.
  virtual std::unique_ptr<DeviceMoment> Mark(Queue /*queue*/) {
    return nullptr;
  }
};

// While it lives, calls of the set's kernels go to `queue`. Scopes nest.
class QueueScope {
 public:
  QueueScope(Kernels& kernels, Queue queue);
  ~QueueScope();
  QueueScope(const QueueScope&) = delete;
  QueueScope& operator=(const QueueScope&) = delete;

 private:
  DeviceQueues* const queues_;  // null: the device works at once
  Queue before_ = Queue::kCompute;
};

// The same for any kernel set; one without queues works at once.
base::Event Record(Kernels& kernels, Queue queue);
void CopyBytes(Kernels& kernels, Queue queue, const Tensor& from,
               const Tensor& to);
// An event that is not done must be one that the device's queues complete, or
// that another thread does.
void Wait(Kernels& kernels, Queue queue, const base::Event& event);
// Memory of the host for what comes from the device, or goes there; the set's
// own where the host may touch that.
Allocator& HostAllocator(Kernels& kernels);
// A copy of `tensor` in that memory, there when what `queue` has been given is
// done; until then `tensor` keeps its memory.
//   kResourceExhausted: there is none left.
absl::StatusOr<Tensor> CopyToHost(Kernels& kernels, Queue queue,
                                  const Tensor& tensor);
// A copy of `tensor`, which is the host's or another device's, in memory of
// this one: `queue` makes it, and kernels that come later find it there.
//   kResourceExhausted: there is none left.
absl::StatusOr<Tensor> CopyToDevice(Kernels& kernels, Queue queue,
                                    const Tensor& tensor);
// Returns the event's status when it is done; drives the device meanwhile.
//   kFailedPrecondition: a capture is going on; it fails by this.
absl::Status Synchronize(Kernels& kernels, const base::Event& event);

}  // namespace troupe::nn

#endif  // NN_KERNELS_DEVICE_QUEUES_H_
