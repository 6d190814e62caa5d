// The memory of a rank's GPU: a caching pool for each queue whose kernels use
// tensors, over the memory of the GPU, and pinned memory of the host for copies
// (device_memory.h).
//
//   DevicePools pools(streams);
//   Allocator& memory = pools.Of(Queue::kComm);
//   if (pools.IsPageable(x)) {
//     TROUPE_ASSIGN_OR_RETURN(staged, pools.Stage(x));
//   }
//   pools.Of(Queue::kCompute).UseInstead(&pool_of_graph);   // a capture
//
// A pool's blocks are reused in the order of its queue; all queues but those of
// communication have the pool of kCompute.
//
// Lifetime: tensors may outlive it. Threads: any; only the device's switches
// pools.

#ifndef NN_KERNELS_CUDA_DEVICE_DEVICE_POOLS_H_
#define NN_KERNELS_CUDA_DEVICE_DEVICE_POOLS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/kernels/cuda/device/device_memory.h"
#include "nn/kernels/cuda/device/pool_switch.h"
#include "nn/kernels/cuda/device/streams.h"
#include "nn/kernels/device_queues.h"
#include "nn/tensor/caching_allocator.h"
#include "nn/tensor/memory_source.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn::cuda {

class DevicePools {
 public:
  explicit DevicePools(std::shared_ptr<const Streams> streams);

  // Memory in the order of the kernels of `queue`.
  PoolSwitch& Of(Queue queue) {
    const int comm = static_cast<int>(queue) - static_cast<int>(Queue::kComm);
    return comm < 0 ? compute_.memory : comm_[comm]->memory;
  }
  // Pinned memory.
  Allocator& host() { return host_; }
  // The GPU's memory behind the pools.
  const std::shared_ptr<MemorySource>& source() const { return source_; }

  // Returns whether the tensor is in memory of the host that is not pinned.
  bool IsPageable(const Tensor& tensor) const {
    return tensor.host_accessible() && !pinned_->Contains(tensor.device_data());
  }
  // Returns a tensor of that shape and dtype in pinned memory.
  absl::StatusOr<Tensor> Stage(const Tensor& like) {
    return Tensor::Create(like.shape(), like.dtype(), host_);
  }

 private:
  struct Pool {
    Pool(int ordinal, std::shared_ptr<MemorySource> source);
    CachingAllocator own;
    PoolSwitch memory{&own};
  };

  const std::shared_ptr<PinnedMemory> pinned_;
  const std::shared_ptr<MemorySource> source_;
  Pool compute_;
  std::vector<std::unique_ptr<Pool>> comm_;
  CachingAllocator host_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_DEVICE_POOLS_H_
