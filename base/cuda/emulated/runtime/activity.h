// Counts what a world does, and remembers where it was found to be stuck.
//
//     Activity activity;
//     ++activity.counts.enqueued;
//     if (activity.IsStuck()) return false;    // nothing has moved since
//     activity.SetStuck();
//
// Threads: under the runtime's lock.

#ifndef BASE_CUDA_EMULATED_RUNTIME_ACTIVITY_H_
#define BASE_CUDA_EMULATED_RUNTIME_ACTIVITY_H_

#include <cstdint>

#include "base/cuda/emulated/emulated_cuda.h"

namespace emulated_cuda {

class Activity {
 public:
  OperationCounts counts;

  // Number of times that an operation was enqueued or executed.
  std::uint64_t moves() const { return counts.enqueued + counts.executed; }
  // Marks a deadlock, until the next move.
  void SetStuck() { stuck_at_ = moves(); }
  bool IsStuck() const { return stuck_at_ == moves(); }

 private:
  std::uint64_t stuck_at_ = ~std::uint64_t{0};
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_ACTIVITY_H_
