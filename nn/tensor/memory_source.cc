#include "nn/tensor/memory_source.h"

#include <sys/mman.h>

#include <cstdlib>

namespace troupe::nn {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Limit of the address space of an x86-64 process. Sanitizers end the process
// above it, where malloc returns null.
constexpr std::size_t kBytesMax = std::size_t{1} << 47;

class Host final : public MemorySource {
 public:
  void* Allocate(std::size_t bytes) override {
    if (bytes > kBytesMax) return nullptr;
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* const block = std::aligned_alloc(alignment, rounded);
    if (block != nullptr && bytes >= kHugePage) {
      madvise(block, bytes, MADV_HUGEPAGE);
    }
    return block;
  }
  void Free(void* block, std::size_t) override { std::free(block); }
};

}  // namespace

std::shared_ptr<MemorySource> HostMemory() { return std::make_shared<Host>(); }

}  // namespace troupe::nn
