// The interface through which an allocator gets raw blocks of device memory.
//
//   std::shared_ptr<MemorySource> source = HostMemory();
//   void* block = source->Allocate(4096);        // null: no memory left
//   source->Free(block, 4096);
//
// Threads: any. Cost: a call of the system or the driver; a CachingAllocator
// keeps blocks that are needed again and again.

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

  // Returns at least `bytes`, aligned to 64 bytes, or null if out of memory.
  virtual void* Allocate(std::size_t bytes) = 0;
  // Frees a block; `bytes` is the number that was passed to Allocate().
  virtual void Free(void* block, std::size_t bytes) = 0;
  // Whether the host may read and write the blocks.
  virtual bool host_accessible() const { return true; }
  // Number of bytes left; none if the source cannot tell.
  virtual std::optional<std::size_t> bytes_free() const { return {}; }
};

// Returns the host's memory. Blocks of 2 MiB and more use huge pages where the
// system grants them.
std::shared_ptr<MemorySource> HostMemory();

}  // namespace troupe::nn

#endif  // NN_TENSOR_MEMORY_SOURCE_H_
