// Macros for the sanitizer that the file is compiled with, for any compiler.
//
//     #if TROUPE_ASAN
//     __asan_unpoison_memory_region(stack, bytes);
//     #endif

#ifndef BASE_FIBERS_SANITIZERS_H_
#define BASE_FIBERS_SANITIZERS_H_

// g++ defines __SANITIZE_*, clang has features.
#if defined(__has_feature)
#define TROUPE_HAS_FEATURE(name) __has_feature(name)
#else
#define TROUPE_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || TROUPE_HAS_FEATURE(address_sanitizer)
#define TROUPE_ASAN 1
#else
#define TROUPE_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || TROUPE_HAS_FEATURE(thread_sanitizer)
#define TROUPE_TSAN 1
#else
#define TROUPE_TSAN 0
#endif

#endif  // BASE_FIBERS_SANITIZERS_H_
