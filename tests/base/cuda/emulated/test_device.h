// The device that runs a test's kernels: the emulation or a GPU. The same test
// is linked with one of two implementations, and passes with both.
//
//   if (!WhyNoDevice().empty()) GTEST_SKIP() << WhyNoDevice();
//   EXPECT_EQ(CompareRuns([&] {
//     DeviceVector<float> sums = Poisoned<float>(rows);
//     EXPECT_TRUE(WaitFor(RowSums(rows, in.data(), sums.data())).ok());
//     return sums;
//   }), "");
//
// Threads: one at a time.

#ifndef TESTS_BASE_CUDA_EMULATED_TEST_DEVICE_H_
#define TESTS_BASE_CUDA_EMULATED_TEST_DEVICE_H_

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace emulated_cuda_test {

// Returns why kernels cannot run here; empty if they can.
std::string WhyNoDevice();

// Allocates memory that both the host and kernels may access; never null.
void* AllocateShared(std::size_t bytes);
void FreeShared(void* memory);

// Waits until all launched kernels have ended. Returns `launched` if that is an
// error, and otherwise the error of the kernels.
absl::Status WaitFor(absl::Status launched);

// Returns the byte with which outputs are filled before a kernel writes them.
unsigned char PoisonByte();

// Number of runs of a kernel in CompareRuns(): one for every schedule of the
// emulation, or three on a GPU. BeginRun(-1) restores the default schedule.
int RunCount();
void BeginRun(int run);

template <typename T>
struct SharedAllocator {
  using value_type = T;
  SharedAllocator() = default;
  template <typename U>
  SharedAllocator(const SharedAllocator<U>&) {}  // NOLINT(runtime/explicit)
  T* allocate(std::size_t count) {
    return static_cast<T*>(AllocateShared(count * sizeof(T)));
  }
  void deallocate(T* values, std::size_t) { FreeShared(values); }
  friend bool operator==(SharedAllocator, SharedAllocator) { return true; }
  friend bool operator!=(SharedAllocator, SharedAllocator) { return false; }
};

template <typename T>
using DeviceVector = std::vector<T, SharedAllocator<T>>;

// Returns an output, [count], filled with PoisonByte().
template <typename T>
DeviceVector<T> Poisoned(std::size_t count) {
  DeviceVector<T> values(count);
  std::memset(static_cast<void*>(values.data()), PoisonByte(),
              count * sizeof(T));
  return values;
}

// Calls run(), which returns a vector, RunCount() times. Returns "" when the
// vectors have equal bits, otherwise a text that names the run that differs
// from the first.
template <typename Run>
std::string CompareRuns(Run run) {
  std::string difference;
  BeginRun(0);
  const auto first = run();
  for (int i = 1; i < RunCount() && difference.empty(); ++i) {
    BeginRun(i);
    const auto now = run();
    if (now.size() != first.size() ||
        std::memcmp(now.data(), first.data(),
                    first.size() * sizeof(first[0])) != 0) {
      difference = "run " + std::to_string(i) + " differs from run 0";
    }
  }
  BeginRun(-1);
  return difference;
}

}  // namespace emulated_cuda_test

#endif  // TESTS_BASE_CUDA_EMULATED_TEST_DEVICE_H_
