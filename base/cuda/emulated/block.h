// Executes one block of CUDA threads under a schedule, with its barriers and
// warp operations. For executor.cc.
//
//   Block block;
//   block.BeginGrid(grid, thread_body, &random);
//   std::exception_ptr error = block.Run({0, 0, 0});
//
// Threads: one at a time.

#ifndef BASE_CUDA_EMULATED_BLOCK_H_
#define BASE_CUDA_EMULATED_BLOCK_H_

#include <vector_types.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "base/cuda/emulated/cuda_thread.h"
#include "base/cuda/emulated/executor.h"
#include "base/cuda/emulated/ready_ring.h"
#include "base/cuda/emulated/thread_fibers.h"
#include "base/cuda/emulated/thread_ops.h"

namespace emulated_cuda {

class Block {
 public:
  void SetRaceScope(RaceScope scope) { fibers_.SetRaceScope(scope); }

  // Prepares the blocks that follow. `body` and `random` outlive them. Throws
  // Error if there is no memory for the stacks.
  void BeginGrid(const Grid& grid, const std::function<void()>& body,
                 Random* random);

  // Runs the threads of one block until all have returned. Returns the
  // exception of the first that failed, or the report of a deadlock; the other
  // threads are unwound then.
  std::exception_ptr Run(uint3 index);

  // The operations of thread_ops.h, called by the running threads.
  int BlockOp(Op op, int predicate, CodeSite site);
  std::uint64_t WarpOp(const LaneCall& call, CodeSite site);
  [[noreturn]] void Trap(CodeSite site);

  // Returns the running thread; throws Error, naming `what`, outside a kernel.
  CudaThread& Running(const char* what);
  // Returns an error that names the kernel and the block.
  Error ErrorOf(const std::string& what) const;

  const Stats& stats() const { return stats_; }

 private:
  struct Warp {
    unsigned done = 0;     // lanes that have returned, or do not exist
    unsigned waiting = 0;  // lanes in an operation
    char barrier = 0;      // its address names ThreadSanitizer's edges
  };

  void Start();
  void Abandon();
  CudaThread* TakeNext();
  CudaThread& RunThreads(CudaThread& first);
  void ThreadMain(CudaThread& thread);
  void Begin(CudaThread& thread);
  void Enter(CudaThread& thread);
  void Wait(CudaThread& thread);
  void MakeReady(CudaThread& thread);
  void TryReleaseBarrier();
  void TryCompleteWarpOp(unsigned warp_index, unsigned mask);
  void ThreadReturned(CudaThread& thread);
  void CheckCall(const CudaThread& thread) const;
  Error ErrorOfThreads(const std::string& what) const;

  CudaThread threads_[kThreadsMax];
  ThreadFibers fibers_;
  Stats stats_;
  // State of the grid.
  Grid grid_;
  const std::function<void()>* body_ = nullptr;
  Random* random_ = nullptr;
  Order order_ = Order::kForward;
  unsigned count_ = 0;  // number of threads of a block
  // State of the block.
  Warp warps_[kThreadsMax / kWarpLanes];
  ReadyRing ready_;
  unsigned alive_ = 0;
  unsigned arrived_ = 0;  // number of threads at the barrier
  char barrier_ = 0;      // its address names ThreadSanitizer's edges
  CudaThread* running_ = nullptr;
  CudaThread* due_ = nullptr;  // taken from ready_, to be entered next
  bool abandoning_ = false;
  std::exception_ptr error_;
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_BLOCK_H_
