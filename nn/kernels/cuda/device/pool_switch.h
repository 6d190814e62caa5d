// The allocator of a device. It allocates from the device's own pool or, during
// the capture of a graph, from the graph's pool (cuda_graph.h).
//
//   PoolSwitch memory(&pool);
//   memory.UseInstead(&pool_of_graph);
//   TROUPE_ASSIGN_OR_RETURN(StoragePtr block, memory.Allocate(64));  // of that
//   memory.UseInstead(nullptr);
//
// A block returns to the pool that it came from. stats() and ReleaseCached()
// are those of the device's own pool.
//
// Threads: any; only the thread that allocates may switch.

#ifndef NN_KERNELS_CUDA_DEVICE_POOL_SWITCH_H_
#define NN_KERNELS_CUDA_DEVICE_POOL_SWITCH_H_

#include <atomic>
#include <cstddef>

#include "absl/status/statusor.h"
#include "nn/tensor/allocator.h"

namespace troupe::nn::cuda {

class PoolSwitch final : public Allocator {
 public:
  // `own` must outlive the switch.
  explicit PoolSwitch(Allocator* own) : own_(*own), in_use_(own) {}

  // Allocates from `pool` from now on; null: from the device's own pool again.
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
