// The sanitizers' functions that the executor calls, as weak symbols: null if
// the program is linked without that sanitizer. So executor.cc, which is never
// instrumented, is the same in every build.
//
//   if (__tsan_acquire != nullptr) __tsan_acquire(&edge);
//
// Threads: any.

#ifndef BASE_CUDA_EMULATED_SANITIZER_HOOKS_H_
#define BASE_CUDA_EMULATED_SANITIZER_HOOKS_H_

#include <cstddef>

#define EMULATED_CUDA_WEAK __attribute__((weak))

extern "C" {

// AddressSanitizer: before and after each change of stacks.
void __sanitizer_start_switch_fiber(void** save, const void* stack,
                                    std::size_t bytes) EMULATED_CUDA_WEAK;
void __sanitizer_finish_switch_fiber(void* save, const void** old_stack,
                                     std::size_t* old_bytes) EMULATED_CUDA_WEAK;

// ThreadSanitizer. Flag 1 of a switch: it orders nothing.
void* __tsan_get_current_fiber() EMULATED_CUDA_WEAK;
void* __tsan_create_fiber(unsigned flags) EMULATED_CUDA_WEAK;
void __tsan_set_fiber_name(void* fiber, const char* name) EMULATED_CUDA_WEAK;
void __tsan_switch_to_fiber(void* fiber, unsigned flags) EMULATED_CUDA_WEAK;
void __tsan_acquire(void* edge) EMULATED_CUDA_WEAK;
void __tsan_release(void* edge) EMULATED_CUDA_WEAK;
void AnnotateBenignRaceSized(const char* file, int line,
                             const volatile void* begin, long bytes,
                             const char* why) EMULATED_CUDA_WEAK;
void AnnotateIgnoreSyncBegin(const char* file, int line) EMULATED_CUDA_WEAK;
void AnnotateIgnoreSyncEnd(const char* file, int line) EMULATED_CUDA_WEAK;

}  // extern "C"

#endif  // BASE_CUDA_EMULATED_SANITIZER_HOOKS_H_
