// Memory for tensors: 64-byte aligned blocks, kept after release and handed out
// again, because a training step asks for the same sizes over and over.
//
//   CachingAllocator allocator;
//   StoragePtr block = allocator.Allocate(4096);    // bytes; not zeroed
//   float* p = static_cast<float*>(block->data());
//   block.reset();                                  // back to the cache
//   allocator.stats().bytes_cached;                 // 4096
//
// Lifetime: storages may outlive the allocator that made them (its state goes
// with the last of them). Threads: any thread may allocate and release. Cost:
// one short lock and no system call for a size that was seen before.
// Blocks of 2 MiB and more ask the kernel for huge pages.

#ifndef NN_TENSOR_ALLOCATOR_H_
#define NN_TENSOR_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nn/tensor/device.h"

namespace troupe::nn {

namespace internal {
class AllocatorState;
}  // namespace internal

// One block: the reference count and the data that follows it.
class Storage {
 public:
  void* data() { return this + 1; }
  std::size_t bytes() const { return bytes_; }

 private:
  friend class StoragePtr;
  friend class internal::AllocatorState;

  Storage(internal::AllocatorState* owner, std::size_t bytes,
          std::size_t block_bytes)
      : owner_(owner), bytes_(bytes), block_bytes_(block_bytes) {}
  static void Release(Storage* storage);

  internal::AllocatorState* owner_;
  std::size_t bytes_;        // asked for
  std::size_t block_bytes_;  // taken, with this header
  std::atomic<std::int32_t> count_{1};
  // The data behind this header must start on a cache line.
  char padding_[64 - 3 * sizeof(std::size_t) - sizeof(count_)];
};
static_assert(sizeof(Storage) == 64, "data must be 64-byte aligned");

// A counted reference to a Storage; null by default.
class StoragePtr {
 public:
  StoragePtr() = default;
  // Takes over one count that the caller holds.
  explicit StoragePtr(Storage* counted) : storage_(counted) {}
  StoragePtr(const StoragePtr& other) : storage_(other.storage_) {
    if (storage_) storage_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  StoragePtr(StoragePtr&& other) noexcept : storage_(other.storage_) {
    other.storage_ = nullptr;
  }
  StoragePtr& operator=(StoragePtr other) noexcept {
    Storage* mine = storage_;
    storage_ = other.storage_;
    other.storage_ = mine;
    return *this;
  }
  ~StoragePtr() { reset(); }

  void reset() {
    if (storage_ &&
        storage_->count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      Storage::Release(storage_);
    }
    storage_ = nullptr;
  }
  Storage* get() const { return storage_; }
  Storage* operator->() const { return storage_; }
  explicit operator bool() const { return storage_ != nullptr; }

 private:
  Storage* storage_ = nullptr;
};

class CachingAllocator {
 public:
  struct Options {
    // What the cache may hold; a block released beyond it is freed at once.
    std::size_t cached_bytes_max = std::size_t{1} << 30;
    Device device;
  };
  struct Stats {
    std::size_t bytes_in_use = 0;  // blocks handed out, headers included
    std::size_t bytes_cached = 0;  // blocks waiting to be handed out again
    std::size_t bytes_in_use_peak = 0;
    std::int64_t system_allocations = 0;
    std::int64_t allocations = 0;
  };

  CachingAllocator() : CachingAllocator(Options{}) {}
  explicit CachingAllocator(Options options);
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // `bytes` of memory, 64-byte aligned, contents unspecified. CHECK-fails when
  // the system has no memory left: nothing in a step can go on without it.
  StoragePtr Allocate(std::size_t bytes);

  // Gives every cached block back to the system.
  void ReleaseCached();

  Stats stats() const;
  Device device() const { return device_; }

 private:
  const Device device_;
  internal::AllocatorState* const state_;
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_ALLOCATOR_H_
