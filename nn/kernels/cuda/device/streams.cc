#include "nn/kernels/cuda/device/streams.h"

#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {

using base::CudaStatus;

absl::StatusOr<std::shared_ptr<Streams>> Streams::Create(int ordinal) {
  std::shared_ptr<Streams> streams(new Streams(ordinal));
  for (Queue queue : {Queue::kCompute, Queue::kCopy, Queue::kComm}) {
    TROUPE_RETURN_IF_ERROR(streams->Open(queue));
  }
  return streams;
}

absl::Status Streams::Open(Queue queue) {
  absl::MutexLock lock(&mutex_);
  cudaStream_t& stream = streams_[static_cast<int>(queue)];
  if (stream != nullptr) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(ordinal_), "cudaSetDevice"));
  int least = 0, greatest = 0;  // priorities: a smaller number goes first
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                 "cudaDeviceGetStreamPriorityRange"));
  return CudaStatus(
      cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                   queue >= Queue::kComm ? greatest : least),
      "cudaStreamCreateWithPriority");
}

Streams::~Streams() {
  Finish();
  absl::MutexLock lock(&mutex_);
  for (cudaStream_t stream : streams_) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
}

void Streams::Finish() const {
  for (int queue = 0; queue < kNumQueues; ++queue) {
    const cudaStream_t stream = Of(static_cast<Queue>(queue));
    // CUDA keeps an error, so the device's next event reports it.
    if (stream != nullptr) cudaStreamSynchronize(stream);
  }
}

}  // namespace troupe::nn::cuda
