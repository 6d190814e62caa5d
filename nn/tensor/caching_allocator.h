// An allocator that caches released blocks and hands them out again, because a
// training step asks for the same sizes over and over.
//
//   CachingAllocator allocator;                  // the host's memory, cpu:0
//   StoragePtr block = *allocator.Allocate(4096);
//   block.reset();                               // back to the cache
//   allocator.stats().bytes_cached;              // 4096
//
// If the source refuses a block, the allocator returns its whole cache to the
// source and tries once more; then Allocate() fails.
//
// A device's allocator must cache all that a step releases, however much that
// is: otherwise every step would call the system. But blocks of sizes that
// never recur must not pile up. Hence cached_of_peak_max: over a step that
// repeats itself, the blocks take about twice the bytes in use at one time if
// each activation, and the gradient beside it, has a size of its own.
//
// Lifetime: storages may outlive the allocator that made them: the last of them
// frees its state and the source. Cost: one short lock and no system call for a
// size that was seen before.

#ifndef NN_TENSOR_CACHING_ALLOCATOR_H_
#define NN_TENSOR_CACHING_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "nn/tensor/allocator.h"
#include "nn/tensor/memory_source.h"

namespace troupe::nn {

namespace internal {
class AllocatorState;
}  // namespace internal

class CachingAllocator final : public Allocator {
 public:
  struct Options {
    // Limit on the bytes in the cache; a block released beyond it is freed.
    std::size_t cached_bytes_max = std::size_t{1} << 30;
    Device device;
    std::shared_ptr<MemorySource> source = nullptr;  // null: HostMemory()
    // Bytes that the cache may hold beyond that limit, as a multiple of the
    // largest number of bytes in use at one time.
    double cached_of_peak_max = 0;
  };

  CachingAllocator() : CachingAllocator(Options{}) {}
  explicit CachingAllocator(Options options);
  ~CachingAllocator() override;
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  Device device() const override { return device_; }
  absl::StatusOr<StoragePtr> Allocate(std::size_t bytes) override;
  void ReleaseCached() override;
  Stats stats() const override;

 private:
  const Device device_;
  internal::AllocatorState* const state_;
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_CACHING_ALLOCATOR_H_
