// An allocator that keeps what is released and hands it out again, because a
// training step asks for the same sizes over and over.
//
//   CachingAllocator allocator;                  // the host's memory, cpu:0
//   StoragePtr block = *allocator.Allocate(4096);
//   block.reset();                               // back to the cache
//   allocator.stats().bytes_cached;              // 4096
//
// Where the source refuses, everything cached is given back to it and it is
// asked once more; then Allocate() fails.
//
// A device's allocator must keep all that a step releases, however much that
// is: else every step asks the system anew. But sizes that never come again
// must not pile up. Hence cached_of_peak_max: the blocks of a step that repeats
// itself take about twice what it has in use at once, where each of its
// activations has a size of its own, and beside it a gradient.
//
// Lifetime: storages may outlive the allocator that made them (its state, and
// with it the source, goes with the last of them). Cost: one short lock and no
// system call for a size that was seen before.

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
    // What the cache may hold; a block released beyond it is freed at once.
    std::size_t cached_bytes_max = std::size_t{1} << 30;
    Device device;
    std::shared_ptr<MemorySource> source = nullptr;  // HostMemory()
    // What it may hold in any case, as a multiple of the most that was ever in
    // use at once.
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
