#include "nn/kernels/cuda/device/data_notes.h"

#include <new>

#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {
namespace {

// The kernel that writes the note may run at the same time: Read() uses this
// only to decide whether to wait for the complete note.
__attribute__((no_sanitize("thread"))) bool HasDataError(
    const volatile DataError& error) {
  return error.op != kNoDataError;
}

}  // namespace

absl::Status DataNotes::Allocate(Allocator& pinned) {
  TROUPE_ASSIGN_OR_RETURN(notes_,
                          pinned.Allocate(sizeof(DataError) * kNumQueues));
  for (int i = 0; i < kNumQueues; ++i) {
    new (Of(static_cast<Queue>(i))) DataError();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DataNotes::Read(Queue queue,
                                     const std::shared_ptr<EventPool>& events,
                                     cudaStream_t stream,
                                     absl::Status* status) {
  if (!status->ok() || !HasDataError(*Of(queue))) return true;
  // The kernel that writes the note may still run, and may have been enqueued
  // after the recording that is done. It has ended once all work that its
  // stream was given so far has ended.
  std::shared_ptr<const EventMark>& noted = noted_[static_cast<int>(queue)];
  if (noted == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(noted, EventPool::Record(events, stream));
  }
  const cudaError_t state = cudaEventQuery(noted->event());
  if (state == cudaErrorNotReady) {
    cudaGetLastError();  // clears "not ready" for the check of the next launch
    return false;
  }
  TROUPE_RETURN_IF_ERROR(base::CudaStatus(state, "cudaEventQuery"));
  noted = nullptr;
  *status = StatusOf(*Of(queue));
  return true;
}

void DataNotes::AddAwaited(Watcher::Marks& marks) const {
  for (const auto& noted : noted_) {
    if (noted != nullptr) marks.push_back(noted);
  }
}

void DataNotes::Clear() {
  for (auto& noted : noted_) noted = nullptr;
}

}  // namespace troupe::nn::cuda
