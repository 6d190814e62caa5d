// Tests errors of the emulated runtime: injected errors of calls, sticky
// errors, kernels that fail, deadlocks, and a machine without devices.

#include <cuda_runtime_api.h>

#include <set>
#include <stdexcept>
#include <string>

#include "base/cuda/emulated/enqueue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/base/cuda/emulated/runtime_test_util.h"

namespace emulated_cuda_test {
namespace {

using testing::HasSubstr;

void Increment(void* number) { ++*static_cast<int*>(number); }

TEST(DeviceErrorsTest, TheLastErrorIsKeptUntilAsked) {
  NewWorld(1);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(DeviceErrorsTest, NamesAndTexts) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation),
               "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMpsConnectionFailed),
               "cudaErrorMpsConnectionFailed");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)),
               "unrecognized error code");
}

// Makes each call of a small program fail in turn, and no other.
TEST(DeviceErrorsTest, AnyCallCanBeMadeToFail) {
  const auto program = [] {
    void* p = nullptr;
    std::string failed;
    if (cudaSetDevice(0)) failed += "set ";
    if (cudaMalloc(&p, 8)) failed += "malloc ";
    if (cudaMemset(p, 0, 8)) failed += "memset ";
    if (cudaDeviceSynchronize()) failed += "wait ";
    if (cudaFree(p)) failed += "free ";
    return failed;
  };
  NewWorld(1);
  EXPECT_EQ(program(), "");
  EXPECT_EQ(emulated_cuda::CallCount(), 5u);
  std::set<std::string> outcomes;
  for (std::uint64_t number = 1; number <= 5; ++number) {
    emulated_cuda::Options options = OneThread(1);
    options.fail.number = number;
    emulated_cuda::Reset(options);
    outcomes.insert(program());
  }
  EXPECT_THAT(outcomes, testing::ElementsAre("free ", "malloc memset ",
                                             "memset ", "set ", "wait "));
}

TEST(DeviceErrorsTest, TheNthCallOfOneFunction) {
  emulated_cuda::Options options = OneThread(1);
  options.fail.number = 2;
  options.fail.function = "cudaMalloc";
  options.fail.error = cudaErrorMemoryAllocation;
  emulated_cuda::Reset(options);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 8), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&p, 8), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&p, 8), cudaSuccess);
}

TEST(DeviceErrorsTest, AStickyErrorStaysWithItsDevice) {
  emulated_cuda::Options options = OneThread(1);
  options.fail.number = 3;
  options.fail.error = cudaErrorIllegalAddress;
  options.fail.sticky = true;
  emulated_cuda::Reset(options);
  int ran = 0;
  const cudaStream_t stream = NewStream();
  EXPECT_EQ(cudaLaunchHostFunc(stream, Increment, &ran), cudaSuccess);
  EXPECT_EQ(cudaLaunchHostFunc(stream, Increment, &ran),
            cudaErrorIllegalAddress);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  }
  cudaSetDevice(1);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(AllProblems(), "") << "no leaks are counted";
}

TEST(DeviceErrorsTest, WhatIsQueuedOnABrokenDeviceNeverRuns) {
  NewWorld(1);
  int before = 0;
  int after = 0;
  const cudaStream_t stream = NewStream();
  cudaLaunchHostFunc(stream, Increment, &before);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  emulated_cuda::BreakDevice(0, cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaLaunchHostFunc(stream, Increment, &after),
            cudaErrorECCUncorrectable);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorECCUncorrectable);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 0);
}

TEST(DeviceErrorsTest, AKernelThatThrowsBreaksTheDevice) {
  NewWorld(1);
  const cudaStream_t stream = NewStream();
  EXPECT_EQ(emulated_cuda::EnqueueKernel(
                stream, {"Bad", "bad.cu", 7},
                [] { throw std::runtime_error("barrier in one branch"); }),
            nullptr);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_STREQ(emulated_cuda::EnqueueKernel(stream, {"Next", "", 0}, [] {}),
               "cudaErrorLaunchFailure");
  EXPECT_THAT(
      AllProblems(),
      HasSubstr("barrier in one branch [Bad, launched at bad.cu:7, on stream"));
}

TEST(DeviceErrorsTest, AnOperationMayNotCallTheApi) {
  NewWorld(1);
  const cudaStream_t stream = NewStream();
  cudaError_t inside = cudaSuccess;
  cudaLaunchHostFunc(
      stream,
      [](void* error) {
        *static_cast<cudaError_t*>(error) = cudaDeviceSynchronize();
      },
      &inside);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(inside, cudaErrorNotPermitted);
  EXPECT_THAT(AllProblems(),
              HasSubstr("cudaDeviceSynchronize was called inside"));
}

TEST(DeviceErrorsTest, WrongHandlesAreErrors) {
  NewWorld(1);
  const cudaStream_t stream = NewStream();
  const cudaEvent_t event = NewEvent();
  cudaStreamDestroy(stream);
  cudaEventDestroy(event);
  int ran = 0;
  EXPECT_EQ(cudaLaunchHostFunc(stream, Increment, &ran),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
  // A launch on a stream of a device that is not current fails.
  const cudaStream_t other = NewStream();
  cudaSetDevice(1);
  EXPECT_STREQ(emulated_cuda::EnqueueKernel(other, {"K", "", 0}, [] {}),
               "cudaErrorInvalidResourceHandle");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the launch asked";
}

// A launch calls cudaGetLastError(), and so reports an earlier unread error.
TEST(DeviceErrorsTest, ALaunchReportsAnEarlierError) {
  NewWorld(1);
  EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice);
  EXPECT_STREQ(emulated_cuda::EnqueueKernel(nullptr, {"K", "", 0}, [] {}),
               "cudaErrorInvalidDevice");
  EXPECT_EQ(emulated_cuda::EnqueueKernel(nullptr, {"K", "", 0}, [] {}),
            nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(DeviceErrorsTest, NoDevices) {
  emulated_cuda::Options options = OneThread(1);
  options.devices = 0;
  emulated_cuda::Reset(options);
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 8), cudaErrorNoDevice);
  EXPECT_EQ(AllProblems(), "");
}

TEST(DeviceErrorsTest, DevicesSayWhatTheyAre) {
  emulated_cuda::Options options = OneThread(1);
  options.devices = 3;
  options.device_bytes = 1 << 20;
  emulated_cuda::Reset(options);
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 3);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 2), cudaSuccess);
  EXPECT_EQ(properties.totalGlobalMem, std::size_t{1} << 20);
  EXPECT_EQ(properties.warpSize, 32);
  int value = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0),
            cudaSuccess);
  EXPECT_EQ(value, properties.multiProcessorCount);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 3), cudaErrorInvalidDevice);
  int version = 0;
  EXPECT_EQ(cudaRuntimeGetVersion(&version), cudaSuccess);
  EXPECT_EQ(version, CUDART_VERSION);
}

TEST(DeviceErrorsTest, PeersAreEnabledOnce) {
  NewWorld(1);
  int can = 0;
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 1, 1), cudaSuccess);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0),
            cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  emulated_cuda::Options options = OneThread(1);
  options.peer_access = false;
  emulated_cuda::Reset(options);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 0);
  EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
}

}  // namespace
}  // namespace emulated_cuda_test
