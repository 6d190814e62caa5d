// The stacks of a block's threads, the switches between them and the scheduler,
// and the sanitizers' notifications of both. For executor.cc.
//
//     scheduler:  Start(t, body); Enter(t) ...        Enter(t) ...
//     thread:                      body(); Wait(t) ...  back; end
//
// A thread that has returned may hand its stack to one that has not begun
// (HandOver()): threads that never wait then run one after another like calls
// of a function, without a switch.
//
// For ThreadSanitizer each thread is a fiber of its own, ordered after the
// start of the block and before its end (BlockBegins(), BlockEnds()), and at
// the barriers in between (Order()). Under RaceScope::kStreams it sees no
// switch.
//
// Threads: those of the executor. Limits: kThreadsMax stacks of kStackBytes of
// address space; pages are allocated on first access and kept.

#ifndef BASE_CUDA_EMULATED_THREAD_FIBERS_H_
#define BASE_CUDA_EMULATED_THREAD_FIBERS_H_

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/cuda/emulated/cuda_thread.h"
#include "base/cuda/emulated/executor.h"
#include "base/cuda/emulated/sanitizer_hooks.h"

namespace emulated_cuda {

class ThreadFibers {
 public:
  static constexpr std::size_t kStackBytes = 256 << 10;

  // Applies to the grids that follow.
  void SetRaceScope(RaceScope scope);

  // Gives up to `count` of `threads`, [kThreadsMax], a stack; throws Error.
  void Prepare(CudaThread* threads, unsigned count);

  // Makes the caller the scheduler of the blocks that follow.
  void BeginGrid();

  // Makes a fiber that calls body(thread) when it is first entered. The body
  // must not throw, and returns the thread that has the stack at its end.
  template <typename Body>
  void Start(CudaThread& thread, Body body);

  // Runs the thread, and those to which it hands its stack, until one waits or
  // the last one ends; `running` is the one that runs. Called by the scheduler.
  void Enter(CudaThread& thread, CudaThread* const& running);
  // Gives the stack of `from`, which has ended, to `to`, which has not begun.
  // Called on that stack. Not where hands_over() is false.
  void HandOver(CudaThread& from, CudaThread& to);
  // Returns whether threads may share a stack. ThreadSanitizer must see each
  // one as a fiber.
  bool hands_over() const { return !tsan_sees_threads(); }
  // Returns to the scheduler until the next Enter(). Called by the thread.
  void Wait(CudaThread& thread);

  // Order all earlier work before the block's threads, and these before all
  // later work. Called by the scheduler.
  void BlockBegins();
  void BlockEnds();

  // Orders all earlier work of the threads of for_each(visit) before all their
  // later work; `edge` is any address that stands for their barrier.
  template <typename ForEach>
  void Order(void* edge, ForEach for_each);

 private:
  // Keeps the stacks, which outlive their fibers.
  struct NoFree {
    void deallocate(boost::context::stack_context&) noexcept {}
  };

  void Arrive(CudaThread& thread);
  void Depart(CudaThread& thread);
  bool tsan_sees_threads() const {
    return scope_ == RaceScope::kThreads && __tsan_switch_to_fiber != nullptr;
  }

  RaceScope scope_ = RaceScope::kThreads;
  unsigned prepared_ = 0;  // number of threads that have a stack
  char* stacks_ = nullptr;
  // State of the scheduler.
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
  // Stacks begin at different offsets within a page: otherwise the hot frames
  // of all threads would share a few sets of the cache.
  const std::size_t unused = thread.id % 16 * 256;
  thread.runs_on = thread.stack;
  context::stack_context stack;
  stack.sp = thread.stack + kStackBytes - unused;
  stack.size = kStackBytes - unused;
  thread.fiber = context::fiber(
      std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
      NoFree{}, [this, &thread, body](context::fiber&& back) {
        thread.back = std::move(back);
        Arrive(thread);
        CudaThread& last = body(thread);
        Depart(last);
        return std::move(last.back);
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
