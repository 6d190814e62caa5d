#include "nn/tensor/memory_source.h"

#include <sys/mman.h>

#include <cstdlib>

namespace troupe::nn {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

class Host final : public MemorySource {
 public:
  void* Allocate(std::size_t bytes) override {
    const std::size_t alignment = bytes >= kHugePage ? kHugePage : kLine;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    if (rounded < bytes) return nullptr;  // beyond the address space
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
