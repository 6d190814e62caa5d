// Where an allocator gets a device's memory from, in raw blocks.
//
//   std::shared_ptr<MemorySource> source = HostMemory();
//   void* block = source->Allocate(4096);        // null: there is none left
//   source->Free(block, 4096);
//
// Threads: any. Cost: a call of the system or the driver; what is asked for
// again and again is kept by a CachingAllocator.

#ifndef NN_TENSOR_MEMORY_SOURCE_H_
#define NN_TENSOR_MEMORY_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace troupe::nn {

class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // At least `bytes`, aligned to 64 bytes; null where there is no such block.
  virtual void* Allocate(std::size_t bytes) = 0;
  // `bytes` as they were given to Allocate().
  virtual void Free(void* block, std::size_t bytes) = 0;
  // Whether the host may read and write the blocks.
  virtual bool host_accessible() const { return true; }
  // Bytes that are left; nothing where the source does not know.
  virtual std::optional<std::size_t> bytes_free() const { return {}; }
};

// The host's own. Blocks of 2 MiB and more ask the kernel for huge pages.
std::shared_ptr<MemorySource> HostMemory();

}  // namespace troupe::nn

#endif  // NN_TENSOR_MEMORY_SOURCE_H_
