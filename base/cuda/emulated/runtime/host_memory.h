// Pinned host memory: asynchronous copies access it in place.
//
//     switch (PinnedAt(p, bytes)) { ... }
//
// Threads: under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_RUNTIME_HOST_MEMORY_H_
#define BASE_CUDA_EMULATED_RUNTIME_HOST_MEMORY_H_

#include <cstddef>
#include <map>
#include <optional>

namespace emulated_cuda {

enum class Pinned { kNot, kAll, kBeyondItsEnd };

// Ranges of host memory that do not overlap.
class HostRanges {
 public:
  void Add(const void* begin, std::size_t bytes);
  // Returns the bytes of the range that begins there; none: there is no such.
  std::optional<std::size_t> Remove(const void* begin);
  // Returns how [p, p + bytes) overlaps the range that `p` lies in.
  Pinned At(const char* p, std::size_t bytes) const;
  bool empty() const { return ranges_.empty(); }
  // Calls std::free() for each.
  void Free();

 private:
  std::map<const char*, std::size_t> ranges_;  // begin, bytes
};

struct PinnedHostMemory {
  HostRanges allocated;   // memory of the runtime
  HostRanges registered;  // memory of the user's
};

// Returns how [p, p + bytes) overlaps pinned memory.
Pinned PinnedAt(const void* p, std::size_t bytes);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_HOST_MEMORY_H_
