// The emulation's notifications to the sanitizers. It is itself compiled
// without them in every build, and detects at run time, by weak symbols, which
// one is linked.
//
//     NotRecorded quiet;              // hides the runtime's own accesses
//     std::vector<int> queue = {1};
//     { Recorded seen; NoteWrite(to, bytes); }  // but not these
//     Release(edge);                  // here, and ...
//     Acquire(edge);                  // ... there: a happens-before edge
//
// Without a sanitizer nothing here has an effect.

#ifndef BASE_CUDA_EMULATED_RUNTIME_SANITIZERS_H_
#define BASE_CUDA_EMULATED_RUNTIME_SANITIZERS_H_

#include <cstddef>

#define EMULATED_CUDA_WEAK __attribute__((weak))

extern "C" {
void* __tsan_get_current_fiber() EMULATED_CUDA_WEAK;
void* __tsan_create_fiber(unsigned flags) EMULATED_CUDA_WEAK;
void __tsan_set_fiber_name(void* fiber, const char* name) EMULATED_CUDA_WEAK;
void __tsan_switch_to_fiber(void* fiber, unsigned flags) EMULATED_CUDA_WEAK;
void __tsan_acquire(void* edge) EMULATED_CUDA_WEAK;
void __tsan_release(void* edge) EMULATED_CUDA_WEAK;
void __tsan_func_entry(void* pc) EMULATED_CUDA_WEAK;
void __tsan_func_exit() EMULATED_CUDA_WEAK;
void __tsan_ignore_thread_begin() EMULATED_CUDA_WEAK;
void __tsan_ignore_thread_end() EMULATED_CUDA_WEAK;
void __tsan_read_range(void* begin, std::size_t bytes) EMULATED_CUDA_WEAK;
void __tsan_write_range(void* begin, std::size_t bytes) EMULATED_CUDA_WEAK;
void AnnotateIgnoreSyncBegin(const char* file, int line) EMULATED_CUDA_WEAK;
void AnnotateIgnoreSyncEnd(const char* file, int line) EMULATED_CUDA_WEAK;
void __sanitizer_start_switch_fiber(void** save, const void* bottom,
                                    std::size_t bytes) EMULATED_CUDA_WEAK;
void __sanitizer_finish_switch_fiber(void* save, const void** old_bottom,
                                     std::size_t* old_bytes) EMULATED_CUDA_WEAK;
void __asan_poison_memory_region(const volatile void* begin,
                                 std::size_t bytes) EMULATED_CUDA_WEAK;
void __asan_unpoison_memory_region(const volatile void* begin,
                                   std::size_t bytes) EMULATED_CUDA_WEAK;
}

namespace emulated_cuda {

inline bool UnderThreadSanitizer() { return __tsan_switch_to_fiber != nullptr; }
inline bool UnderAddressSanitizer() {
  return __asan_poison_memory_region != nullptr;
}

// Its address stands for a happens-before edge.
using Edge = char;

inline void Acquire(Edge& edge) {
  if (__tsan_acquire) __tsan_acquire(&edge);
}
inline void Release(Edge& edge) {
  if (__tsan_release) __tsan_release(&edge);
}

// Records an access of the running thread, which ThreadSanitizer compares with
// others'.
inline void NoteRead(const void* begin, std::size_t bytes) {
  if (__tsan_read_range) __tsan_read_range(const_cast<void*>(begin), bytes);
}
inline void NoteWrite(void* begin, std::size_t bytes) {
  if (__tsan_write_range) __tsan_write_range(begin, bytes);
}

// AddressSanitizer reports accesses to forbidden memory.
inline void Forbid(void* begin, std::size_t bytes) {
  if (__asan_poison_memory_region) __asan_poison_memory_region(begin, bytes);
}
inline void Allow(void* begin, std::size_t bytes) {
  if (__asan_unpoison_memory_region) {
    __asan_unpoison_memory_region(begin, bytes);
  }
}

// Hides the accesses of this thread in a scope from ThreadSanitizer, since
// library functions that the runtime shares with the program may be
// instrumented.
class NotRecorded {
 public:
  NotRecorded() {
    if (__tsan_ignore_thread_begin) __tsan_ignore_thread_begin();
  }
  NotRecorded(const NotRecorded&) = delete;
  NotRecorded& operator=(const NotRecorded&) = delete;
  ~NotRecorded() {
    if (__tsan_ignore_thread_end) __tsan_ignore_thread_end();
  }
};

// Inside a NotRecorded scope: records accesses of the host program.
class Recorded {
 public:
  Recorded() {
    if (__tsan_ignore_thread_end) __tsan_ignore_thread_end();
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  ~Recorded() {
    if (__tsan_ignore_thread_begin) __tsan_ignore_thread_begin();
  }
};

// Hides the ordering by locks and atomics in a scope from ThreadSanitizer.
class OrdersNothing {
 public:
  OrdersNothing() {
    if (AnnotateIgnoreSyncBegin) AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  }
  OrdersNothing(const OrdersNothing&) = delete;
  OrdersNothing& operator=(const OrdersNothing&) = delete;
  ~OrdersNothing() {
    if (AnnotateIgnoreSyncEnd) AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }
};

}  // namespace emulated_cuda

#endif  // BASE_CUDA_EMULATED_RUNTIME_SANITIZERS_H_
