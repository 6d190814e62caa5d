// Notifies AddressSanitizer and ThreadSanitizer of a fiber: the location of its
// stack, and each switch to and from it. Without a sanitizer it does nothing.
// For base/fibers/fiber.cc.
//
//     resumer:  Enter(); ... switch ...              Return();
//     fiber:                        Arrive(); ... Leave(last); ... switch ...
//
// Threads: the same as for the fiber.

#ifndef BASE_FIBERS_FIBER_SANITIZERS_H_
#define BASE_FIBERS_FIBER_SANITIZERS_H_

#include <cstddef>

#include "base/fibers/sanitizers.h"

#if TROUPE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if TROUPE_TSAN
// g++ 12 has these functions in its library and lacks their header.
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#endif

namespace troupe::base {

#if TROUPE_ASAN

class FiberSanitizers {
 public:
  void SetStack(const void* bottom, std::size_t bytes) {
    bottom_ = at_bottom_ = bottom;
    bytes_ = at_bytes_ = bytes;
  }
  // Clears the poison that the last frames left, since it outlives the stack's
  // memory: later users of these addresses would get false reports.
  void DropStack() { __asan_unpoison_memory_region(bottom_, bytes_); }
  void Enter() {
    __sanitizer_start_switch_fiber(&resumer_fake_, at_bottom_, at_bytes_);
  }
  void Arrive() {
    __sanitizer_finish_switch_fiber(fake_, &resumer_bottom_, &resumer_bytes_);
  }
  // `last`: nothing runs on the fiber's stack after this.
  void Leave(bool last) {
    __sanitizer_start_switch_fiber(last ? nullptr : &fake_, resumer_bottom_,
                                   resumer_bytes_);
  }
  void Return() {
    __sanitizer_finish_switch_fiber(resumer_fake_, &at_bottom_, &at_bytes_);
  }

 private:
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
  // Stack that it waits on: its own, or that of a fiber it has resumed.
  const void* at_bottom_ = nullptr;
  std::size_t at_bytes_ = 0;
  void* fake_ = nullptr;
  const void* resumer_bottom_ = nullptr;
  std::size_t resumer_bytes_ = 0;
  void* resumer_fake_ = nullptr;
};

#elif TROUPE_TSAN

class FiberSanitizers {
 public:
  FiberSanitizers() : fiber_(__tsan_create_fiber(0)), at_(fiber_) {}
  FiberSanitizers(const FiberSanitizers&) = delete;
  FiberSanitizers& operator=(const FiberSanitizers&) = delete;
  ~FiberSanitizers() { __tsan_destroy_fiber(fiber_); }

  void SetStack(const void*, std::size_t) {}
  void DropStack() {}
  void Enter() {
    resumer_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(at_, 0);
  }
  void Arrive() {}
  void Leave(bool) {
    at_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(resumer_, 0);
  }
  void Return() {}

 private:
  void* const fiber_;
  void* at_;  // where it waits: in itself, or in a fiber that it has resumed
  void* resumer_ = nullptr;
};

#else

class FiberSanitizers {
 public:
  void SetStack(const void*, std::size_t) {}
  void DropStack() {}
  void Enter() {}
  void Arrive() {}
  void Leave(bool) {}
  void Return() {}
};

#endif

}  // namespace troupe::base

#endif  // BASE_FIBERS_FIBER_SANITIZERS_H_
