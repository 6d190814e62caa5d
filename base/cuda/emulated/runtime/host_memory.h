// Pinned host memory: asynchronous copies access it in place.
//
//     switch (PinnedAt(p, bytes)) { ... }
//
// Threads: under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_RUNTIME_HOST_MEMORY_H_
#define BASE_CUDA_EMULATED_RUNTIME_HOST_MEMORY_H_

#include <cstddef>

namespace emulated_cuda {

enum class Pinned { kNot, kAll, kBeyondItsEnd };

// Returns how [p, p + bytes) overlaps pinned memory.
Pinned PinnedAt(const void* p, std::size_t bytes);

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_HOST_MEMORY_H_
