// Tests emulated device memory and pinned memory: poison, stray accesses,
// writes out of bounds, allocation in stream order, copies.

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/cuda/emulated/enqueue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/cuda/emulated/runtime_test_util.h"
#include "tests/base/seeds.h"

namespace emulated_cuda_test {
namespace {

using testing::HasSubstr;
using troupe::EverySeed;
using troupe::ReplayCommand;
using troupe::Seeds;

// A kernel for invalid writes, which the sanitizers do not check.
__attribute__((no_sanitize("address", "thread"))) void Write(float* to) {
  *to = 1.0f;
}
void WriteLater(cudaStream_t stream, float* to) {
  emulated_cuda::EnqueueKernel(stream, {"Write", __FILE__, __LINE__},
                               [=] { Write(to); });
}

std::vector<float> Read(const float* from, std::size_t count) {
  std::vector<float> values(count);
  EXPECT_EQ(cudaMemcpy(values.data(), from, count * sizeof(float),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  return values;
}

TEST(DeviceMemoryTest, FreshMemoryIsPoison) {
  NewWorld(1);
  float* const x = OnDevice<float>(5);
  for (float value : Read(x, 5)) EXPECT_TRUE(std::isnan(value));
  cudaFree(x);
  EXPECT_EQ(AllProblems(), "");
}

TEST(DeviceMemoryDeathTest, AStrayAccessOfTheHostFaults) {
  if (kUnderTsan) GTEST_SKIP() << "fork";
  NewWorld(1);
  float* const x = OnDevice<float>(4);
  EXPECT_DEATH(Write(x), "host code touches memory of device 0 at 0x");
  cudaFree(x);
}

TEST(DeviceMemoryDeathTest, WithSomeSeedsSoDoesAnotherDevicesKernel) {
  if (kUnderTsan) GTEST_SKIP() << "fork";
  // Tries seeds until one makes a strict emulation, as one in eight does.
  const auto touch_other_device = [] {
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      NewWorld(seed);
      cudaSetDevice(1);
      float* const x = OnDevice<float>(4);
      cudaMemset(x, 0, 16);
      cudaDeviceSynchronize();
      cudaSetDevice(0);
      WriteLater(NewStream(), x);
      cudaDeviceSynchronize();
    }
  };
  EXPECT_DEATH(touch_other_device(),
               "an operation of another device touches memory of device 1");
}

TEST(DeviceMemoryTest, WritesBeyondTheEndAreFound) {
  for (int beyond : {10, 15, 70, 90}) {  // within the rounded size, and outside
    NewWorld(1);
    const cudaStream_t stream = NewStream();
    float* const x = OnDevice<float>(10);
    WriteLater(stream, x + beyond);
    cudaStreamSynchronize(stream);
    cudaFree(x);
    cudaStreamDestroy(stream);
    EXPECT_THAT(AllProblems(),
                HasSubstr("written beyond an end: 40 bytes of device memory "
                          "allocated in "));
  }
}

TEST(DeviceMemoryTest, WritesAfterTheFreeAreFound) {
  for (bool in_stream_order : {false, true}) {
    NewWorld(1);
    const cudaStream_t stream = NewStream();
    float* const x = OnDevice<float>(10);
    if (in_stream_order) {
      cudaFreeAsync(x, stream);
    } else {
      cudaFree(x);
    }
    WriteLater(stream, x + 3);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    EXPECT_THAT(AllProblems(), HasSubstr("written after it was freed: 40 "));
  }
}

TEST(DeviceMemoryTest, LeaksAreFound) {
  NewWorld(1);
  OnDevice<float>(10);
  PinnedMemory<float>(1);
  NewStream();
  NewEvent();
  const std::string problems = AllProblems();
  EXPECT_THAT(problems, HasSubstr("40 bytes of device memory allocated in "));
  EXPECT_THAT(problems, HasSubstr("pinned memory was never freed"));
  EXPECT_THAT(problems, HasSubstr("streams were never destroyed"));
  EXPECT_THAT(problems, HasSubstr("events were never destroyed"));
}

TEST(DeviceMemoryTest, MemoryIsLimited) {
  emulated_cuda::Options options = OneThread(1);
  options.device_bytes = 1000;
  emulated_cuda::Reset(options);
  char* const x = OnDevice<char>(900);
  void* y = &options;
  EXPECT_EQ(cudaMalloc(&y, 101), cudaErrorMemoryAllocation);
  EXPECT_EQ(y, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  std::size_t free = 0;
  std::size_t total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, 100u);
  EXPECT_EQ(total, 1000u);
  cudaFree(x);
  char* const z = OnDevice<char>(1000);
  cudaFree(z);
  EXPECT_EQ(AllProblems(), "");
}

// Every seed must reuse memory then, as it cannot get other addresses.
TEST(DeviceMemoryTest, MemoryThatIsFreeIsThereWhenTheAddressesAreUsedUp) {
  for (const std::uint64_t seed : Seeds(40)) {
    emulated_cuda::Options options = OneThread(seed);
    options.address_bytes = std::size_t{16} << 10;
    emulated_cuda::Reset(options);
    for (int i = 0; i < 100; ++i) {
      void* x = nullptr;
      ASSERT_EQ(cudaMalloc(&x, 1000), cudaSuccess) << i << ReplayCommand(seed);
      ASSERT_EQ(cudaFree(x), cudaSuccess);
    }
    EXPECT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
}

TEST(DeviceMemoryTest, WrongFreesAreErrors) {
  NewWorld(1);
  char* const x = OnDevice<char>(100);
  EXPECT_EQ(cudaFree(x + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(&x[0]), cudaSuccess);
  EXPECT_EQ(cudaFree(x), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  int local = 0;
  EXPECT_EQ(cudaFreeHost(&local), cudaErrorInvalidValue);
}

// Memory freed in stream order may be reused never, by the same stream, or by
// another one. Each case occurs, and each is safe.
TEST(DeviceMemoryTest, StreamOrderedMemoryComesBackInOrder) {
  std::set<std::string> outcomes;
  for (std::uint64_t seed : EverySeed(300)) {
    NewWorld(seed);
    const cudaStream_t a = NewStream();
    const cudaStream_t b = NewStream();
    void *x = nullptr, *y = nullptr, *z = nullptr;
    ASSERT_EQ(cudaMallocAsync(&x, 64, a), cudaSuccess);
    cudaMemsetAsync(x, 1, 64, a);
    cudaFreeAsync(x, a);
    ASSERT_EQ(cudaMallocAsync(&y, 64, a), cudaSuccess);
    ASSERT_EQ(cudaMallocAsync(&z, 64, b), cudaSuccess);
    cudaMemsetAsync(y, 2, 64, a);
    cudaMemsetAsync(z, 3, 64, b);
    outcomes.insert(x == y ? "same stream" : x == z ? "other stream" : "new");
    char of_y[64], of_z[64];
    cudaMemcpyAsync(of_y, y, 64, cudaMemcpyDeviceToHost, a);
    cudaMemcpyAsync(of_z, z, 64, cudaMemcpyDeviceToHost, b);
    cudaFreeAsync(y, a);
    cudaFreeAsync(z, b);
    cudaDeviceSynchronize();
    EXPECT_EQ(of_y[63], 2) << ReplayCommand(seed);
    EXPECT_EQ(of_z[63], 3) << ReplayCommand(seed);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
  EXPECT_EQ(outcomes,
            (std::set<std::string>{"new", "same stream", "other stream"}));
}

TEST(DeviceMemoryTest, CopiesGoEverywhere) {
  for (std::uint64_t seed : Seeds(50)) {
    NewWorld(seed);
    int* const pinned = PinnedMemory<int>(4);
    for (int i = 0; i < 4; ++i) pinned[i] = 10 + i;
    int* const x = OnDevice<int>(4);
    cudaSetDevice(1);
    int* const y = OnDevice<int>(4);
    int* const z = OnDevice<int>(4);
    const cudaStream_t stream = NewStream();
    cudaMemcpyAsync(x, pinned, 16, cudaMemcpyDefault, stream);
    cudaMemcpyPeerAsync(y, 1, x, 0, 16, stream);
    cudaMemcpyAsync(z, y, 16, cudaMemcpyDeviceToDevice, stream);
    int pageable[4] = {};
    ASSERT_EQ(cudaMemcpyAsync(pageable, z, 16, cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    EXPECT_THAT(pageable, testing::ElementsAre(10, 11, 12, 13))
        << ReplayCommand(seed);
    // Pageable memory is staged within the call: it may change afterwards.
    cudaMemcpyAsync(z, pageable, 16, cudaMemcpyHostToDevice, stream);
    pageable[0] = 99;
    ASSERT_EQ(cudaMemcpyAsync(pinned, z, 16, cudaMemcpyDefault, stream),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(pinned[0], 10);
    cudaFree(x);
    cudaFree(y);
    cudaFree(z);
    cudaFreeHost(pinned);
    cudaStreamDestroy(stream);
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
}

TEST(DeviceMemoryTest, CopiesThatDoNotFitAreErrors) {
  NewWorld(1);
  int* const x = OnDevice<int>(4);
  int* const pinned = PinnedMemory<int>(2);
  EXPECT_EQ(cudaMemcpy(x, pinned, 16, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(x + 1, 0, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x, pinned, 8, cudaMemcpyDeviceToHost),
            cudaErrorInvalidMemcpyDirection);
  cudaFree(x);
  cudaFreeHost(pinned);
  const auto problems = emulated_cuda::Finish();
  EXPECT_THAT(problems, testing::ElementsAre(
                            HasSubstr("cudaMemcpy beyond an allocation, in "),
                            HasSubstr("cudaMemset beyond an allocation, in ")));
}

TEST(DeviceMemoryTest, PointersSayWhatTheyAre) {
  NewWorld(1);
  int local[4] = {};
  int* const x = OnDevice<int>(4);
  int* const pinned = PinnedMemory<int>(4);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, x + 1), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned + 1), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, local), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  ASSERT_EQ(cudaHostRegister(local, sizeof local, 0), cudaSuccess);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, local), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaHostUnregister(local), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(local), cudaErrorHostMemoryNotRegistered);
}

TEST(DeviceMemoryTest, CallsToTheSystemAreCounted) {
  NewWorld(1);
  const cudaStream_t stream = NewStream();
  void* x = nullptr;
  cudaMallocAsync(&x, 16, stream);
  cudaFreeAsync(x, stream);
  EXPECT_EQ(emulated_cuda::Counts().system_allocations, 0u);
  cudaFree(OnDevice<int>(1));
  cudaFreeHost(PinnedMemory<int>(1));
  EXPECT_EQ(emulated_cuda::Counts().system_allocations, 4u);
  cudaDeviceSynchronize();
}

}  // namespace
}  // namespace emulated_cuda_test
