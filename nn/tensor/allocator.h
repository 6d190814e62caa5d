// The memory of one device: every tensor's block comes from an Allocator.
//
//   absl::StatusOr<StoragePtr> block = kernels.allocator().Allocate(4096);
//   if (!block.ok()) return block.status();      // kResourceExhausted
//   (*block)->data();                            // 64-byte aligned, not zeroed
//
// Running out of memory is an error of the job and not a bug in Troupe: whoever
// allocates passes it on, and the first who knows adds what it was for (module
// and op: nn/autograd/context.h).
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
    std::int64_t system_allocations = 0;  // asked of the memory's source
    std::int64_t allocations = 0;
  };

  virtual ~Allocator() = default;

  virtual Device device() const = 0;
  // `bytes` of memory, 64-byte aligned, contents unspecified.
  //   kResourceExhausted: there is none left, after everything cached was given
  //     back. Says how much was asked for, held and, where known, free.
  virtual absl::StatusOr<StoragePtr> Allocate(std::size_t bytes) = 0;
  // Gives every cached block back to the source.
  virtual void ReleaseCached() = 0;
  virtual Stats stats() const = 0;
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_ALLOCATOR_H_
