// Work of a device that was recorded once and runs again whenever it is asked
// to: one call of the host's for what were hundreds (device_queues.h).
//
//   TROUPE_RETURN_IF_ERROR(queues->BeginCapture());
//   status = kernels.ReluForward(x, y);                 // recorded, not run
//   auto graph = queues->EndCapture();                  // or why not
//   CopyBytes(kernels, Queue::kCompute, next_x, x);
//   status = (*graph)->Launch();                        // y is relu(next_x)
//
// What is recorded keeps addresses and numbers as they were: a tensor is read
// and written where it lay, and an argument that is no tensor never changes.
// Memory that was there before is the caller's to keep; what a capture asked
// the allocator for belongs to the graph alone.
//
// Order: a launch runs in the order of kCompute, and in that of each other
// queue that took part.
//
// Threads: the device's. Lifetime: goes before its device; what was launched
// still runs to its end.

#ifndef NN_KERNELS_DEVICE_GRAPH_H_
#define NN_KERNELS_DEVICE_GRAPH_H_

#include <optional>

#include "absl/status/status.h"

namespace troupe::nn {

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual absl::Status Launch() = 0;
};

// A place in the order of a queue, by the device's clock.
class DeviceMoment {
 public:
  virtual ~DeviceMoment() = default;
  // From `earlier`, of the same device, to this one; nothing while the device
  // has not come so far.
  virtual std::optional<double> SecondsSince(
      const DeviceMoment& earlier) const = 0;
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_DEVICE_GRAPH_H_
