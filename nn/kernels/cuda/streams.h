// The streams of one device, one for each queue (nn/kernels/device_queues.h).
//
//   TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const Streams> streams,
//                           Streams::Create(/*ordinal=*/0));
//   cudaStream_t compute = streams->Of(Queue::kCompute);
//
// None of them waits for the null stream. kComm has the higher priority: what
// others wait for goes first.
//
// Lifetime: whoever may still have to wait for a stream keeps them; they go
// when their work is done. Threads: any.

#ifndef NN_KERNELS_CUDA_STREAMS_H_
#define NN_KERNELS_CUDA_STREAMS_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/statusor.h"
#include "nn/kernels/device_queues.h"

namespace troupe::nn::cuda {

class Streams {
 public:
  // Makes `ordinal` the current device.
  static absl::StatusOr<std::shared_ptr<const Streams>> Create(int ordinal);
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  int ordinal() const { return ordinal_; }
  cudaStream_t Of(Queue queue) const {
    return streams_[static_cast<int>(queue)];
  }
  // Blocks until all that they were given is done.
  void Finish() const;

 private:
  explicit Streams(int ordinal) : ordinal_(ordinal) {}

  const int ordinal_;
  cudaStream_t streams_[kNumQueues] = {};
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_STREAMS_H_
