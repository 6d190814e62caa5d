// Helper functions of the tests of the emulated runtime.
//
//   NewWorld(seed);
//   const cudaStream_t stream = NewStream();
//   float* const x = OnDevice<float>(16);
//   cudaFree(x), cudaStreamDestroy(stream);
//   EXPECT_EQ(AllProblems(), "");

#ifndef TESTS_BASE_CUDA_EMULATED_RUNTIME_TEST_UTIL_H_
#define TESTS_BASE_CUDA_EMULATED_RUNTIME_TEST_UTIL_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/cuda/emulated/emulated_cuda.h"
#include "base/fibers/sanitizers.h"
#include "gtest/gtest.h"

namespace emulated_cuda_test {

#if TROUPE_TSAN
inline constexpr bool kUnderTsan = true;
#else
inline constexpr bool kUnderTsan = false;
#endif
#if TROUPE_ASAN
inline constexpr bool kUnderAsan = true;
#else
inline constexpr bool kUnderAsan = false;
#endif

// Options of an emulation that one host thread uses.
inline emulated_cuda::Options OneThread(std::uint64_t seed) {
  emulated_cuda::Options options;
  options.seed = seed;
  options.stall_seconds = 0;
  return options;
}

inline void NewWorld(std::uint64_t seed) {
  emulated_cuda::Reset(OneThread(seed));
}

inline cudaStream_t NewStream(unsigned flags = cudaStreamNonBlocking) {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
  return stream;
}

inline cudaEvent_t NewEvent(unsigned flags = cudaEventDisableTiming) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
  return event;
}

template <typename T>
T* OnDevice(std::size_t count) {
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, count * sizeof(T)), cudaSuccess);
  return static_cast<T*>(p);
}

template <typename T>
T* PinnedMemory(std::size_t count) {
  void* p = nullptr;
  EXPECT_EQ(cudaMallocHost(&p, count * sizeof(T)), cudaSuccess);
  return static_cast<T*>(p);
}

// Returns all problems that Finish() reports, one per line.
inline std::string AllProblems() {
  std::string text;
  for (const std::string& problem : emulated_cuda::Finish()) {
    text += problem + "\n";
  }
  return text;
}

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_RUNTIME_TEST_UTIL_H_
