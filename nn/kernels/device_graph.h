// Device work that is recorded once and then launched any number of times, as a
// CUDA graph: one call of the host instead of hundreds (device_queues.h).
//
//   TROUPE_RETURN_IF_ERROR(queues->BeginCapture());
//   status = kernels.ReluForward(x, y);                 // recorded, not run
//   auto graph = queues->EndCapture();                  // or an error
//   CopyBytes(kernels, Queue::kCompute, next_x, x);
//   status = (*graph)->Launch();                        // y is relu(next_x)
//
// A recording keeps addresses and numbers: tensors are read and written at the
// same addresses, and arguments other than tensors never change. The caller
// must keep memory that existed before the capture; memory allocated during a
// capture belongs to the graph alone.
//
// Order: a launch runs in the order of kCompute, and of each other queue that
// took part in the capture.
//
// Threads: the device's. Lifetime: destroy it before its device; work that was
// launched still runs to its end.

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

// A point in the order of a queue, timed by the device's clock.
class DeviceMoment {
 public:
  virtual ~DeviceMoment() = default;
  // Returns the time from `earlier`, of the same device, to this moment; none
  // until the device has reached it.
  virtual std::optional<double> SecondsSince(
      const DeviceMoment& earlier) const = 0;
};

}  // namespace troupe::nn

#endif  // NN_KERNELS_DEVICE_GRAPH_H_
