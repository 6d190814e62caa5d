// The notes of wrong data that kernels leave for the host: one for each queue,
// in pinned memory (kernel_parts/data_error.h).
//
//   DataNotes notes;
//   TROUPE_RETURN_IF_ERROR(notes.Allocate(pools.host()));
//   LaunchEmbedding(notes.Of(Queue::kCompute), stream);
//   // When work of the queue has ended:
//   TROUPE_ASSIGN_OR_RETURN(
//       const bool read, notes.Read(Queue::kCompute, events, stream, &status));
//
// Threads: the device's.

#ifndef NN_KERNELS_CUDA_DEVICE_DATA_NOTES_H_
#define NN_KERNELS_CUDA_DEVICE_DATA_NOTES_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/kernels/cuda/device/event_pool.h"
#include "nn/kernels/cuda/device/watcher.h"
#include "nn/kernels/cuda/kernel_parts/data_error.h"
#include "nn/kernels/device_queues.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

class DataNotes {
 public:
  // Takes memory for the notes; called once, before the others.
  absl::Status Allocate(Allocator& pinned);

  // The note for kernels of the queue's stream.
  DataError* Of(Queue queue) const {
    return static_cast<DataError*>(notes_->data()) + static_cast<int>(queue);
  }
  // Sets `status`, unless it is an error already, to the note of `queue`, if
  // there is one. Returns false while a kernel may still be writing it.
  absl::StatusOr<bool> Read(Queue queue,
                            const std::shared_ptr<EventPool>& events,
                            cudaStream_t stream, absl::Status* status);
  // Adds the marks that Read() waits for.
  void AddAwaited(Watcher::Marks& marks) const;
  // Forgets these marks: all work has ended.
  void Clear();

 private:
  StoragePtr notes_;  // one DataError for each queue
  // Mark after which a queue's note is complete; null: no note was seen.
  std::shared_ptr<const EventMark> noted_[kNumQueues];
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_DATA_NOTES_H_
