// Interface to the device of one rank, for groups of ranks on devices: a queue
// that runs work in order and asynchronously, like a CUDA stream.
//
//   work.Wait(gradients_ready);                      // of any rank
//   TROUPE_RETURN_IF_ERROR(work.Reduce(ReduceOp::kSum, ranges, ranges));
//   Event done = work.Record();
//
// It is implemented outside of comm, over the queues of nn's devices
// (actors/engine/queue_work.h). Threads: those of the device, one at a time.

#ifndef COMM_DEVICE_DEVICE_WORK_H_
#define COMM_DEVICE_DEVICE_WORK_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "base/event.h"
#include "comm/reduction/reduce_op.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

class DeviceWork {
 public:
  virtual ~DeviceWork() = default;

  // Makes work that is enqueued after this call wait for `event`.
  virtual void Wait(const base::Event& event) = 0;
  // Enqueues the tree over `sources`, in rank order (reduction_tree.h), into
  // each of `destinations`.
  //   kUnimplemented: the device lacks the op, or the dtype.
  virtual absl::Status Reduce(ReduceOp op, std::vector<nn::Tensor> sources,
                              std::vector<nn::Tensor> destinations) = 0;
  virtual void Copy(const nn::Tensor& from, const nn::Tensor& to) = 0;
  // Enqueue() is for libraries that enqueue to a stream by themselves,
  // LookAfter() for a check to repeat meanwhile: see
  // nn/kernels/device_queues.h.
  //   kUnimplemented: the device has no streams.
  virtual absl::Status Enqueue(const char* name,
                               std::function<bool(void* native_stream)> work);
  virtual void LookAfter(std::function<bool()> look);
  // Returns whether work is being recorded in a graph, to run later.
  virtual bool capturing() const { return false; }
  // Returns an allocator for host memory that the device copies from and to;
  // null: none.
  virtual nn::Allocator* host_allocator() { return nullptr; }
  // Returns an event that completes once all work so far has run.
  virtual base::Event Record() = 0;
};

}  // namespace troupe::comm

#endif  // COMM_DEVICE_DEVICE_WORK_H_
