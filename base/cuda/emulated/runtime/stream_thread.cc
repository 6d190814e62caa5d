#include "base/cuda/emulated/runtime/stream_thread.h"

#include <sys/mman.h>

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "base/cuda/emulated/runtime/sanitizers.h"

namespace emulated_cuda {
namespace {

namespace context = boost::context;

constexpr std::size_t kGuardBytes = 4096;
// Flag of __tsan_switch_to_fiber(): the switch is no happens-before edge.
constexpr unsigned kOrdersNothing = 1;

std::vector<std::unique_ptr<StreamThread>>& NotInUse() {
  static auto* const threads = new std::vector<std::unique_ptr<StreamThread>>;
  return *threads;
}

// A stack that outlives each context that runs on it.
struct KeptStack {
  void deallocate(context::stack_context&) noexcept {}
};

}  // namespace

std::unique_ptr<StreamThread> StreamThread::Take(const std::string& name) {
  auto& threads = NotInUse();
  if (threads.empty()) threads.push_back(std::make_unique<StreamThread>());
  std::unique_ptr<StreamThread> thread = std::move(threads.back());
  threads.pop_back();
  if (thread->fiber_) __tsan_set_fiber_name(thread->fiber_, name.c_str());
  return thread;
}

void StreamThread::GiveBack(std::unique_ptr<StreamThread> thread) {
  NotInUse().push_back(std::move(thread));
}

StreamThread::StreamThread() {
  void* const memory =
      mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kGuardBytes, PROT_NONE);
  stack_ = static_cast<char*>(memory) + kGuardBytes;
  if (UnderThreadSanitizer()) fiber_ = __tsan_create_fiber(0);
}

StreamThread::~StreamThread() {
  munmap(stack_ - kGuardBytes, kGuardBytes + kStackBytes);
}

void StreamThread::Call(const CallSite& site, const std::function<void()>& f) {
  if (!fiber_) return f();
  void* const caller = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber_, kOrdersNothing);
  for (int i = site.depth; i-- > 0;) {
    __tsan_func_entry(site.return_addresses[i]);
  }
  f();
  for (int i = site.depth; i-- > 0;) __tsan_func_exit();
  __tsan_switch_to_fiber(caller, kOrdersNothing);
}

void StreamThread::CallOnOwnStack(const CallSite& site,
                                  const std::function<void()>& f) {
  std::exception_ptr exception;
  Call(site, [&] {
    OnStack([&] {
      try {
        f();
      } catch (...) {
        exception = std::current_exception();
      }
    });
  });
  if (exception) std::rethrow_exception(exception);
}

void StreamThread::OnStack(const std::function<void()>& f) {
  context::stack_context stack;
  stack.sp = stack_ + kStackBytes;
  stack.size = kStackBytes;
  const void* caller_bottom = nullptr;
  std::size_t caller_bytes = 0;
  context::fiber fiber(
      std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
      KeptStack{}, [&](context::fiber&& caller) {
        if (__sanitizer_finish_switch_fiber) {
          __sanitizer_finish_switch_fiber(nullptr, &caller_bottom,
                                          &caller_bytes);
        }
        f();
        if (__sanitizer_start_switch_fiber) {
          __sanitizer_start_switch_fiber(nullptr, caller_bottom, caller_bytes);
        }
        return std::move(caller);
      });
  void* caller_fake = nullptr;
  if (__sanitizer_start_switch_fiber) {
    __sanitizer_start_switch_fiber(&caller_fake, stack_, kStackBytes);
  }
  fiber = std::move(fiber).resume();
  if (__sanitizer_finish_switch_fiber) {
    __sanitizer_finish_switch_fiber(caller_fake, nullptr, nullptr);
  }
}

}  // namespace emulated_cuda
