// The stacks of a block's threads, the switches between them and the scheduler,
// and what the sanitizers are told of both. For executor.cc.
//
//     scheduler:  Start(t, body); Enter(t) ...        Enter(t) ...
//     thread:                      body(); Wait(t) ...  back; end
//
// ThreadSanitizer sees each thread as a fiber of its own, ordered behind the
// start of the block and before its end (BlockBegins(), BlockEnds()), and at
// the barriers between (Order()). Under RaceScope::kStreams it sees no switch.
//
// Threads: those of the executor. Limits: kThreadsMax stacks of kStackBytes of
// address space; pages come when they are touched and are kept.

#ifndef BASE_CUDA_EMULATED_THREAD_FIBERS_H_
#define BASE_CUDA_EMULATED_THREAD_FIBERS_H_

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <utility>

#include "base/cuda/emulated/cuda_thread.h"
#include "base/cuda/emulated/executor.h"
#include "base/cuda/emulated/sanitizer_hooks.h"

namespace emulated_cuda {

class ThreadFibers {
 public:
  static constexpr std::size_t kStackBytes = 256 << 10;

  // For the grids that follow.
  void SetRaceScope(RaceScope scope);

  // Gives `threads`, [kThreadsMax], up to `count` stacks; throws Error.
  void Prepare(CudaThread* threads, unsigned count);

  // The caller is the scheduler of the blocks that follow.
  void BeginGrid();

  // Makes a fiber that calls body(thread) when it is entered first. Nothing
  // may leave the body by an exception.
  template <typename Body>
  void Start(CudaThread& thread, Body body);

  // Runs the thread until it waits or ends. For the scheduler.
  void Enter(CudaThread& thread);
  // Goes back to the scheduler until the next Enter(). For the thread.
  void Wait(CudaThread& thread);

  // What came before the block happens before its threads, and they before what
  // follows. For the scheduler.
  void BlockBegins();
  void BlockEnds();

  // What the threads of for_each(visit) did happens before all that they will
  // do; `edge` is any address that stands for their barrier.
  template <typename ForEach>
  void Order(void* edge, ForEach for_each);

 private:
  // The stacks outlive their fibers.
  struct NoFree {
    void deallocate(boost::context::stack_context&) noexcept {}
  };

  void Arrive(CudaThread& thread);
  void Depart(CudaThread& thread);
  bool tsan_sees_threads() const {
    return scope_ == RaceScope::kThreads && __tsan_switch_to_fiber != nullptr;
  }

  RaceScope scope_ = RaceScope::kThreads;
  unsigned prepared_ = 0;  // threads that have a stack
  char* stacks_ = nullptr;
  // The scheduler.
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_bytes_ = 0;
  void* scheduler_asan_save_ = nullptr;
  void* scheduler_tsan_fiber_ = nullptr;
  // Their addresses name ThreadSanitizer's edges.
  char block_begins_ = 0;
  char block_ends_ = 0;
};

template <typename Body>
void ThreadFibers::Start(CudaThread& thread, Body body) {
  namespace context = boost::context;
  // The tops lie at different offsets within a page: else the hot frames of
  // all threads would share a few sets of the cache.
  const std::size_t unused = thread.id % 16 * 256;
  context::stack_context stack;
  stack.sp = thread.stack + kStackBytes - unused;
  stack.size = kStackBytes - unused;
  thread.fiber = context::fiber(
      std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
      NoFree{}, [this, &thread, body](context::fiber&& back) {
        thread.back = std::move(back);
        Arrive(thread);
        body(thread);
        Depart(thread);
        return std::move(thread.back);
      });
}

template <typename ForEach>
void ThreadFibers::Order(void* edge, ForEach for_each) {
  if (!tsan_sees_threads()) return;
  void* const self = __tsan_get_current_fiber();
  for_each([&](CudaThread& thread) {
    __tsan_switch_to_fiber(thread.tsan_fiber, 1);
    __tsan_release(edge);
  });
  for_each([&](CudaThread& thread) {
    __tsan_switch_to_fiber(thread.tsan_fiber, 1);
    __tsan_acquire(edge);
  });
  __tsan_switch_to_fiber(self, 1);
}

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_THREAD_FIBERS_H_
