#include "nn/kernels/cuda/streams.h"

#include "base/check.h"
#include "base/cuda/cuda_status.h"

namespace troupe::nn::cuda {

using base::CudaStatus;

absl::StatusOr<std::shared_ptr<const Streams>> Streams::Create(int ordinal) {
  TROUPE_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(ordinal), "cudaSetDevice"));
  int least = 0, greatest = 0;  // priorities: a smaller number goes first
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                 "cudaDeviceGetStreamPriorityRange"));
  std::shared_ptr<Streams> streams(new Streams(ordinal));
  for (int i = 0; i < kNumQueues; ++i) {
    const bool first = i == static_cast<int>(Queue::kComm);
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithPriority(&streams->streams_[i],
                                                cudaStreamNonBlocking,
                                                first ? greatest : least),
                   "cudaStreamCreateWithPriority"));
  }
  return streams;
}

Streams::~Streams() {
  Finish();
  for (cudaStream_t stream : streams_) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
}

void Streams::Finish() const {
  for (cudaStream_t stream : streams_) {
    // An error stays with the device: its next event tells it.
    if (stream != nullptr) cudaStreamSynchronize(stream);
  }
}

}  // namespace troupe::nn::cuda
