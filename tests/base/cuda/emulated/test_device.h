// Where a test's kernels run: on the emulation, or on a GPU. The same test is
// linked with one of two sources, and passes with both.
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

// Empty where kernels can run.
std::string WhyNoDevice();

// Memory that the host and kernels read and write; never null.
void* AllocateShared(std::size_t bytes);
void FreeShared(void* memory);

// `launched`, or what went wrong until all launched kernels had ended.
absl::Status WaitFor(absl::Status launched);

// What the bytes of outputs hold before a kernel writes them.
unsigned char PoisonByte();

// How often CompareRuns() runs a kernel: under every schedule of the emulation,
// and three times on a GPU. BeginRun(-1): as it was before the first.
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

// An output, [count].
template <typename T>
DeviceVector<T> Poisoned(std::size_t count) {
  DeviceVector<T> values(count);
  std::memset(static_cast<void*>(values.data()), PoisonByte(),
              count * sizeof(T));
  return values;
}

// Calls run(), which returns a vector, RunCount() times. Returns "" when the
// vectors have equal bits, else which run differs from the first.
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
