// The runnable threads of a block, in a ring of fixed size: it never allocates
// or moves memory, which the sanitizers would see as accesses of the running
// thread. For executor.cc.
//
//   ready.Add(thread.id);
//   while (!ready.empty()) Enter(threads[ready.Take(schedule.order, random)]);
//
// Threads: those of the executor.

#ifndef BASE_CUDA_EMULATED_READY_RING_H_
#define BASE_CUDA_EMULATED_READY_RING_H_

#include <cstdint>

#include "base/cuda/emulated/cuda_thread.h"
#include "base/cuda/emulated/executor.h"

namespace emulated_cuda {

// Marsaglia's xorshift64; never generates 0.
class Random {
 public:
  explicit Random(std::uint64_t seed)
      : state_(seed * 0x9E3779B97F4A7C15u | 1u) {}

  // Returns a random number in [0, end); the bias is below end / 2^64.
  std::uint64_t Below(std::uint64_t end) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % end;
  }

 private:
  std::uint64_t state_;
};

class ReadyRing {
 public:
  bool empty() const { return count_ == 0; }
  void Clear() { count_ = 0; }

  // A thread is in the ring once at most, so that it never overflows.
  void Add(unsigned id) { At(count_++) = static_cast<std::uint16_t>(id); }

  // Removes the first, the last, or a random thread, by `order`.
  unsigned Take(Order order, Random& random) {
    if (order == Order::kForward) {
      const unsigned id = At(0);
      first_ = (first_ + 1) % kThreadsMax;
      --count_;
      return id;
    }
    std::uint16_t& last = At(count_ - 1);
    std::uint16_t id = last;
    if (order == Order::kRandom) {
      std::uint16_t& any = At(static_cast<unsigned>(random.Below(count_)));
      id = any;
      any = last;
    }
    --count_;
    return id;
  }

 private:
  std::uint16_t& At(unsigned place) {
    return ids_[(first_ + place) % kThreadsMax];
  }

  std::uint16_t ids_[kThreadsMax] = {};
  unsigned first_ = 0;
  unsigned count_ = 0;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_READY_RING_H_
