// Memory of one device: an Allocator provides the block of every tensor.
//
//   absl::StatusOr<StoragePtr> block = kernels.allocator().Allocate(4096);
//   if (!block.ok()) return block.status();      // kResourceExhausted
//   (*block)->data();                            // 64-byte aligned, not zeroed
//
// Running out of memory is an error of the job and not a bug in Troupe: callers
// pass the status on, and the first caller that has the context adds what the
// memory was for (module and op: nn/autograd/context.h).
//
// Threads: any thread may allocate and release. Lifetime: storages may outlive
// their allocator.

#ifndef NN_TENSOR_ALLOCATOR_H_
#define NN_TENSOR_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "nn/tensor/device.h"
#include "nn/tensor/storage.h"

namespace troupe::nn {

class Allocator {
 public:
  struct Stats {
    std::size_t bytes_in_use = 0;  // blocks handed out
    std::size_t bytes_cached = 0;  // blocks waiting to be handed out again
    std::size_t bytes_in_use_peak = 0;
    std::int64_t system_allocations = 0;  // calls of the memory source
    std::int64_t allocations = 0;
  };

  virtual ~Allocator() = default;

  virtual Device device() const = 0;
  // Returns `bytes` of memory, 64-byte aligned, contents unspecified.
  //   kResourceExhausted: no memory is left, even after the cache was released.
  //     The message has the bytes asked for, held and, if known, free.
  virtual absl::StatusOr<StoragePtr> Allocate(std::size_t bytes) = 0;
  // Returns every cached block to the source.
  virtual void ReleaseCached() = 0;
  virtual Stats stats() const = 0;
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_ALLOCATOR_H_
