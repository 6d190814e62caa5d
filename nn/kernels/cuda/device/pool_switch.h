// The allocator of a device, which hands out the memory of one pool or, while
// a graph is captured, of another (cuda_graph.h).
//
//   PoolSwitch memory(&pool);
//   memory.UseInstead(&pool_of_graph);
//   TROUPE_ASSIGN_OR_RETURN(StoragePtr block, memory.Allocate(64));  // of that
//   memory.UseInstead(nullptr);
//
// A block goes back to the pool that it came from. Counts are those of the
// device's own pool.
//
// Threads: any; whoever switches is the one that allocates.

#ifndef NN_KERNELS_CUDA_DEVICE_POOL_SWITCH_H_
#define NN_KERNELS_CUDA_DEVICE_POOL_SWITCH_H_

#include <atomic>
#include <cstddef>

#include "absl/status/statusor.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

class PoolSwitch final : public Allocator {
 public:
  // `own` outlives it.
  explicit PoolSwitch(Allocator* own) : own_(*own), in_use_(own) {}

  // Null: the device's own again.
  void UseInstead(Allocator* pool) {
    in_use_.store(pool == nullptr ? &own_ : pool, std::memory_order_release);
  }

  Device device() const override { return own_.device(); }
  absl::StatusOr<StoragePtr> Allocate(std::size_t bytes) override {
    return in_use_.load(std::memory_order_acquire)->Allocate(bytes);
  }
  void ReleaseCached() override { own_.ReleaseCached(); }
  Stats stats() const override { return own_.stats(); }

 private:
  Allocator& own_;
  std::atomic<Allocator*> in_use_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_POOL_SWITCH_H_
