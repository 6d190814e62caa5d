// The queues of a device that are in use: each is opened on its first use
// (stream_queue.h).
//
//   OpenQueues queues(streams, events, &status);
//   TROUPE_RETURN_IF_ERROR(queues.Open(Queue::kCompute));
//   for (Queue queue : queues.list()) {
//     if (queues.Of(queue).held()) return status;
//   }
//
// Threads: the device's.

#ifndef NN_KERNELS_CUDA_DEVICE_OPEN_QUEUES_H_
#define NN_KERNELS_CUDA_DEVICE_OPEN_QUEUES_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nn/kernels/cuda/device/event_pool.h"
#include "nn/kernels/cuda/device/stream_queue.h"
#include "nn/kernels/cuda/device/streams.h"
#include "nn/kernels/cuda/device/watcher.h"
#include "nn/kernels/device_queues.h"

namespace troupe::nn::cuda {

class OpenQueues {
 public:
  // `status`: the device's, which outlives it.
  OpenQueues(std::shared_ptr<Streams> streams,
             std::shared_ptr<EventPool> events, absl::Status* status);

  // Opens the queue and its stream, unless it is open.
  absl::Status Open(Queue queue);
  bool is_open(Queue queue) const {
    return queues_[static_cast<int>(queue)].has_value();
  }
  // Returns an open queue.
  StreamQueue& Of(Queue queue) { return *queues_[static_cast<int>(queue)]; }
  // The open ones, in the order of Open(). A call of Open() while it is read
  // adds to its end, and moves no memory.
  const std::vector<Queue>& list() const { return open_; }

  // Returns the names of the work in flight, "compute: ReluForward; comm: ..".
  std::string InFlight() const;
  // Whether work of StreamQueue::GiveUntilTrue() must be called again.
  bool ask_again() const;
  // Adds the mark of each queue's oldest recording.
  void AddOldest(Watcher::Marks& marks) const;
  // Ends all recordings, also those that are held, with `status`.
  void CompleteAll(const absl::Status& status);

 private:
  const std::shared_ptr<Streams> streams_;
  const std::shared_ptr<EventPool> events_;
  absl::Status& status_;
  std::optional<StreamQueue> queues_[kNumQueues];
  std::vector<Queue> open_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_OPEN_QUEUES_H_
