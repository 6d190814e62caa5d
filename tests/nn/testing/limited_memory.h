// Memory that runs out: at a number of bytes, or at the n-th block.
//
//   auto memory = std::make_shared<LimitedMemory>();
//   memory->bytes_max = 1 << 20;
//   CachingAllocator allocator({/*cached_bytes_max=*/0, Device{}, memory});

#ifndef TESTS_NN_TESTING_LIMITED_MEMORY_H_
#define TESTS_NN_TESTING_LIMITED_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "nn/tensor/memory_source.h"

namespace troupe::nn {

class LimitedMemory : public MemorySource {
 public:
  // Limit on the bytes in use; set before threads start.
  std::size_t bytes_max = std::numeric_limits<std::size_t>::max();
  // Limit on the total number of blocks.
  std::int64_t blocks_max = std::numeric_limits<std::int64_t>::max();

  void* Allocate(std::size_t bytes) override {
    if (blocks_ >= blocks_max || bytes > bytes_max - bytes_) {
      ++refusals_;
      return nullptr;
    }
    ++blocks_;
    const std::size_t taken = bytes_ += bytes;
    if (taken > bytes_peak_) bytes_peak_ = taken;
    return host_->Allocate(bytes);
  }
  void Free(void* block, std::size_t bytes) override {
    bytes_ -= bytes;
    host_->Free(block, bytes);
  }
  std::optional<std::size_t> bytes_free() const override {
    return bytes_max - bytes_;
  }

  // Largest number of bytes in use; exact if one thread allocates.
  std::size_t bytes_peak() const { return bytes_peak_; }
  std::int64_t blocks() const { return blocks_; }
  std::int64_t refusals() const { return refusals_; }

 private:
  const std::shared_ptr<MemorySource> host_ = HostMemory();
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> bytes_peak_{0};
  std::atomic<std::int64_t> blocks_{0};
  std::atomic<std::int64_t> refusals_{0};
};

}  // namespace troupe::nn

#endif  // TESTS_NN_TESTING_LIMITED_MEMORY_H_
