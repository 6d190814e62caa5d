#include "nn/kernels/cuda/device/event_pool.h"

#include <utility>

#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {

using base::CudaStatus;

EventPool::~EventPool() {
  for (cudaEvent_t event : free_) cudaEventDestroy(event);
}

absl::StatusOr<std::shared_ptr<const EventMark>> EventPool::Record(
    const std::shared_ptr<EventPool>& pool, cudaStream_t stream) {
  TROUPE_ASSIGN_OR_RETURN(const cudaEvent_t event, pool->Take());
  auto mark = std::make_shared<const EventMark>(pool, event, stream);
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaEventRecord(event, stream), "cudaEventRecord"));
  return mark;
}

absl::StatusOr<cudaEvent_t> EventPool::Take() {
  {
    absl::MutexLock lock(&mutex_);
    if (!free_.empty()) {
      const cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
    ++created_;
  }
  TROUPE_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(ordinal_), "cudaSetDevice"));
  cudaEvent_t event = nullptr;
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                 "cudaEventCreateWithFlags"));
  return event;
}

void EventPool::GiveBack(cudaEvent_t event) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(event);
}

std::int64_t EventPool::created() const {
  absl::MutexLock lock(&mutex_);
  return created_;
}

}  // namespace troupe::nn::cuda
