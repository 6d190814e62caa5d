// What a group of ranks on devices needs of the device of one rank: a queue
// that does one thing after the other, later than it is told.
//
//   work.Wait(gradients_ready);                      // of any rank
//   TROUPE_RETURN_IF_ERROR(work.Reduce(ReduceOp::kSum, ranges, ranges));
//   Event done = work.Record();
//
// Above nn, which has the devices, it is implemented over their queues
// (actors/engine/queue_work.h). Threads: those of the device, one at a time.

#ifndef COMM_DEVICE_DEVICE_WORK_H_
#define COMM_DEVICE_DEVICE_WORK_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "base/event.h"
#include "comm/reduce_op.h"
#include "nn/tensor/tensor.h"

namespace troupe::comm {

class DeviceWork {
 public:
  virtual ~DeviceWork() = default;

  // What it is given from now on begins when `event` is done.
  virtual void Wait(const base::Event& event) = 0;
  // The tree over `sources`, in rank order (reduction_tree.h), into each of
  // `destinations`.
  //   kUnimplemented: the device lacks the op, or the dtype.
  virtual absl::Status Reduce(ReduceOp op, std::vector<nn::Tensor> sources,
                              std::vector<nn::Tensor> destinations) = 0;
  virtual void Copy(const nn::Tensor& from, const nn::Tensor& to) = 0;
  // For libraries that enqueue to a stream by themselves, and for what is to be
  // looked at meanwhile: see nn/kernels/device_queues.h.
  //   kUnimplemented: the device has no streams.
  virtual absl::Status Enqueue(const char* name,
                               std::function<bool(void* native_stream)> work);
  virtual void LookAfter(std::function<bool()> look);
  // Whether what it is given is recorded in a graph, and runs later.
  virtual bool capturing() const { return false; }
  // Memory of the host that the device copies from and to; null: none.
  virtual nn::Allocator* host_allocator() { return nullptr; }
  // Done when all that it was given so far is.
  virtual base::Event Record() = 0;
};

}  // namespace troupe::comm

#endif  // COMM_DEVICE_DEVICE_WORK_H_
