#include "base/cuda/emulated/thread_fibers.h"

#include <sys/mman.h>

#include <string>

namespace emulated_cuda {
namespace {

// Size of the unmapped page below each stack, on which a stack overflow faults.
constexpr std::size_t kGuardBytes = 4096;

void IgnoreRacesOn(const volatile void* begin, std::size_t bytes,
                   const char* why) {
  if (AnnotateBenignRaceSized == nullptr) return;
  AnnotateBenignRaceSized(__FILE__, __LINE__, begin, static_cast<long>(bytes),
                          why);
}

}  // namespace

void ThreadFibers::SetRaceScope(RaceScope scope) { scope_ = scope; }

void ThreadFibers::Prepare(CudaThread* threads, unsigned count) {
  constexpr std::size_t kEach = kGuardBytes + kStackBytes;
  if (stacks_ == nullptr) {
    void* const memory =
        mmap(nullptr, kThreadsMax * kEach, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw Error("no memory for stacks of threads");
    stacks_ = static_cast<char*>(memory);
    // Matters only under kStreams, where all streams run on these stacks.
    IgnoreRacesOn(stacks_, kThreadsMax * kEach, "stacks of CUDA threads");
  }
  for (; prepared_ < count; ++prepared_) {
    CudaThread& thread = threads[prepared_];
    char* const guard = stacks_ + prepared_ * kEach;
    if (mprotect(guard, kGuardBytes, PROT_NONE) != 0) {
      throw Error("no guard page for the stack of a thread");
    }
    thread.id = prepared_;
    thread.stack = guard + kGuardBytes;
    if (__tsan_create_fiber != nullptr) {
      thread.tsan_fiber = __tsan_create_fiber(0);
      const std::string name = "CUDA thread " + std::to_string(prepared_);
      __tsan_set_fiber_name(thread.tsan_fiber, name.c_str());
    }
  }
}

void ThreadFibers::BeginGrid() {
  if (tsan_sees_threads()) scheduler_tsan_fiber_ = __tsan_get_current_fiber();
}

void ThreadFibers::Enter(CudaThread& thread, CudaThread* const& running) {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&scheduler_asan_save_, thread.runs_on,
                                   kStackBytes);
  }
  if (tsan_sees_threads()) __tsan_switch_to_fiber(thread.tsan_fiber, 1);
  boost::context::fiber left = std::move(thread.fiber).resume();
  running->fiber = std::move(left);
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(scheduler_asan_save_, nullptr, nullptr);
  }
}

void ThreadFibers::HandOver(CudaThread& from, CudaThread& to) {
  to.back = std::move(from.back);
  to.runs_on = from.runs_on;
}

void ThreadFibers::Wait(CudaThread& thread) {
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&thread.asan_save, scheduler_stack_,
                                   scheduler_bytes_);
  }
  if (tsan_sees_threads()) __tsan_switch_to_fiber(scheduler_tsan_fiber_, 1);
  thread.back = std::move(thread.back).resume();
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(thread.asan_save, nullptr, nullptr);
  }
}

void ThreadFibers::Arrive(CudaThread&) {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack_,
                                    &scheduler_bytes_);
  }
  if (tsan_sees_threads()) __tsan_acquire(&block_begins_);
}

void ThreadFibers::Depart(CudaThread&) {
  if (tsan_sees_threads()) __tsan_release(&block_ends_);
  // Null: nothing runs on this stack any more.
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(nullptr, scheduler_stack_, scheduler_bytes_);
  }
  if (tsan_sees_threads()) __tsan_switch_to_fiber(scheduler_tsan_fiber_, 1);
}

void ThreadFibers::BlockBegins() {
  if (tsan_sees_threads()) __tsan_release(&block_begins_);
}

void ThreadFibers::BlockEnds() {
  if (tsan_sees_threads()) __tsan_acquire(&block_ends_);
}

}  // namespace emulated_cuda
