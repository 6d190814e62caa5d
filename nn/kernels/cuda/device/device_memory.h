// The memory sources behind the caching allocators of a GPU: memory of the GPU,
// and pinned memory of the host for copies. A CachingAllocator
// (nn/tensor/caching_allocator.h) calls them only for sizes that its cache does
// not hold.
//
//   CachingAllocator::Options options;
//   options.device = {DeviceType::kCuda, 0};
//   options.source = std::make_shared<DeviceMemory>(streams);
//   options.cached_bytes_max = std::numeric_limits<std::size_t>::max();
//   CachingAllocator allocator(options);
//
// An allocator over DeviceMemory reuses blocks in the order of the compute
// stream (device_queues.h): kernels run there one after another, and other
// streams use a block behind an event. A block that is returned to the driver
// may therefore still be in use, so DeviceMemory::Free() waits for the streams
// first. That blocks, and happens when memory has run out, or at the end.
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

// Pinned memory of the host: copies between it and the GPU are asynchronous.
class PinnedMemory final : public MemorySource {
 public:
  explicit PinnedMemory(int ordinal) : ordinal_(ordinal) {}

  void* Allocate(std::size_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  void Free(void* block, std::size_t bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether `address` lies in one of the allocated blocks.
  bool Contains(const void* address) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int ordinal_;
  mutable absl::Mutex mutex_;
  std::map<std::uintptr_t, std::size_t> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_DEVICE_MEMORY_H_
