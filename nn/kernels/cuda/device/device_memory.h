// Where the memory of a GPU, and the host's that it copies from and to, comes
// from: sources for a CachingAllocator (nn/tensor/caching_allocator.h), which
// asks them only while it sees new sizes.
//
//   CachingAllocator::Options options;
//   options.device = {DeviceType::kCuda, 0};
//   options.source = std::make_shared<DeviceMemory>(streams);
//   options.cached_bytes_max = std::numeric_limits<std::size_t>::max();
//   CachingAllocator allocator(options);
//
// The memory that such an allocator hands out again is in the order of the
// compute stream, as device_queues.h says: kernels follow one another there,
// and what other streams do with it is behind an event. So a block that goes
// back to the driver may still be in use by that stream: DeviceMemory waits for
// it first. That blocks, and happens when memory has run out, or at the end.
//
// Threads: any.

#ifndef NN_KERNELS_CUDA_DEVICE_DEVICE_MEMORY_H_
#define NN_KERNELS_CUDA_DEVICE_DEVICE_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "nn/kernels/cuda/device/streams.h"
#include "nn/tensor/memory_source.h"

namespace troupe::nn::cuda {

// Memory of one GPU.
class DeviceMemory final : public MemorySource {
 public:
  explicit DeviceMemory(std::shared_ptr<const Streams> streams)
      : streams_(std::move(streams)) {}

  void* Allocate(std::size_t bytes) override;
  void Free(void* block, std::size_t bytes) override;
  bool host_accessible() const override { return false; }
  std::optional<std::size_t> bytes_free() const override;

 private:
  const std::shared_ptr<const Streams> streams_;
};

// Memory of the host that is pinned: the GPU copies from and to it while the
// host does something else.
class PinnedMemory final : public MemorySource {
 public:
  explicit PinnedMemory(int ordinal) : ordinal_(ordinal) {}

  void* Allocate(std::size_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Free(void* block, std::size_t bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether `address` lies in one of its blocks.
  bool Contains(const void* address) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int ordinal_;
  mutable absl::Mutex mutex_;
  std::map<std::uintptr_t, std::size_t> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_DEVICE_MEMORY_H_
