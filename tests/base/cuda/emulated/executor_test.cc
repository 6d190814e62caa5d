// Tests the built-in variables of a grid, refused launches, and that the
// executor works after errors.

#include "base/cuda/emulated/executor.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/cuda/emulated/enqueue.h"
#include "base/cuda/emulated/schedules.h"
#include "base/cuda/launch.h"
#include "base/fibers/sanitizers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace emulated_cuda_test {
namespace {

using emulated_cuda::Error;
using emulated_cuda::Order;
using emulated_cuda::Schedule;
using emulated_cuda::ScopedSchedule;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using troupe::base::DynamicShared;
using troupe::base::Launch;
using troupe::base::LaunchShape;

LaunchShape Shape(dim3 grid, dim3 block, std::size_t shared_bytes = 0) {
  LaunchShape shape;
  shape.grid = grid;
  shape.block = block;
  shape.shared_bytes = shared_bytes;
  return shape;
}

std::string ErrorOf(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

__global__ void Nothing() {}
__global__ void ReadsDynamic(float* out) { *out = *DynamicShared<float>(); }
__global__ void ShufflesFar() { __shfl_down_sync(~0u, 1, 33); }
__global__ void OddSegments() { __shfl_sync(~0u, 1, 0, 12); }
__global__ void Traps() {
  if (threadIdx.x == 40) __trap();
  __syncthreads();
}
__global__ void LaunchesAgain() {
  Launch("Nothing", Nothing, Shape(1, 1), nullptr).IgnoreError();
}

TEST(LaunchTest, ShapesThatNoDeviceTakesAreRefusedInWords) {
  const auto refusal = [](const LaunchShape& shape) {
    return Launch("Nothing", Nothing, shape, nullptr).ToString();
  };
  EXPECT_EQ(refusal(Shape(1, 1025)),
            "INTERNAL: Nothing: cudaErrorInvalidConfiguration: bad block size "
            "(1025,1,1)");
  EXPECT_THAT(refusal(Shape(1, dim3(1, 1, 65))), HasSubstr("bad block size"));
  EXPECT_THAT(refusal(Shape(1, 0)), HasSubstr("bad block size (0,1,1)"));
  EXPECT_THAT(refusal(Shape(0, 1)), HasSubstr("bad grid size (0,1,1)"));
  EXPECT_THAT(refusal(Shape(dim3(1, 65536), 1)), HasSubstr("bad grid size"));
  EXPECT_THAT(refusal(Shape(1, 32, 300000)),
              HasSubstr("300000 bytes of dynamic shared memory; at most "
                        "232448"));
  EXPECT_EQ(refusal(Shape(dim3(3, 2), dim3(16, 64), 227 << 10)), "OK");
}

TEST(ExecutorTest, CallsThatHardwareWouldAnswerWithGarbage) {
  EXPECT_THAT(
      ErrorOf([] {
        Launch("ShufflesFar", ShufflesFar, Shape(1, 32), nullptr).IgnoreError();
      }),
      AllOf(HasSubstr("bad argument of __shfl_down_sync at "),
            HasSubstr("executor_test.cc:"),
            HasSubstr("in ShufflesFar, launched at ")));
  EXPECT_THAT(
      ErrorOf([] {
        Launch("OddSegments", OddSegments, Shape(1, 32), nullptr).IgnoreError();
      }),
      HasSubstr("bad argument of __shfl_sync at "));
  EXPECT_THAT(
      ErrorOf([] {
        Launch("Traps", Traps, Shape(dim3(1, 2), 64), nullptr).IgnoreError();
      }),
      AllOf(HasSubstr("thread 40 (lane 8) calls __trap at "),
            HasSubstr("block (0,0,0) of grid (1,2,1)")));
  float out = 0;
  EXPECT_THAT(ErrorOf([&] {
                Launch("ReadsDynamic", ReadsDynamic, Shape(1, 32), nullptr,
                       &out)
                    .IgnoreError();
              }),
              HasSubstr("in a launch without dynamic shared memory"));
  EXPECT_THAT(ErrorOf([] {
                Launch("LaunchesAgain", LaunchesAgain, Shape(1, 1), nullptr)
                    .IgnoreError();
              }),
              HasSubstr("a kernel cannot launch a kernel"));
  EXPECT_EQ(ErrorOf([] { __syncthreads(); }),
            "emulated_cuda: __syncthreads called outside a kernel");
}

// Each of ten threads in ten blocks records when its turn was.
__global__ void TakesTurns(int* turns, int* at) {
  at[(*turns)++] = static_cast<int>(blockIdx.x * 10 + threadIdx.x);
}

std::vector<int> TurnsUnder(const Schedule& schedule) {
  const ScopedSchedule scoped(schedule);
  std::vector<int> at(100, -1);
  int turns = 0;
  // No thread waits, so one host thread runs them in turn, without a race.
  emulated_cuda::Grid grid;
  grid.grid = dim3(10);
  grid.block = dim3(10);
  emulated_cuda::RunGrid(grid, [&] { TakesTurns(&turns, at.data()); });
  return at;
}

#if !TROUPE_TSAN  // threads of a block may not share `turns`
TEST(ExecutorTest, SchedulesOrderBlocksAndThreads) {
  std::vector<int> forward(100);
  for (int i = 0; i < 100; ++i) forward[static_cast<std::size_t>(i)] = i;
  const std::vector<int> reverse(forward.rbegin(), forward.rend());
  EXPECT_EQ(TurnsUnder({Order::kForward}), forward);
  EXPECT_EQ(TurnsUnder({Order::kReverse}), reverse);
  std::set<std::vector<int>> random;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<int> turns = TurnsUnder({Order::kRandom, seed});
    EXPECT_EQ(turns, TurnsUnder({Order::kRandom, seed})) << "same seed";
    random.insert(turns);
    std::sort(turns.begin(), turns.end());
    EXPECT_EQ(turns, forward) << "each thread once";
  }
  EXPECT_EQ(random.size(), 20u);
}
#endif

__global__ void ReadsPoison(unsigned char* out) {
  __shared__ unsigned char fixed[8];
  unsigned char* const dynamic = DynamicShared<unsigned char>();
  out[2 * blockIdx.x] = fixed[7];
  out[2 * blockIdx.x + 1] = dynamic[99];
  __syncthreads();
  fixed[7] = 1;
  dynamic[99] = 1;
}

TEST(ExecutorTest, SharedMemoryIsPoisonedBeforeEachBlock) {
  for (const unsigned char poison : {0xFF, 0x7E}) {
    const ScopedSchedule scoped({Order::kForward, 1, poison});
    unsigned char out[4] = {};
    ASSERT_TRUE(Launch("ReadsPoison", ReadsPoison, Shape(2, 1, 100), nullptr,
                       static_cast<unsigned char*>(out))
                    .ok());
    EXPECT_THAT(out, ElementsAre(poison, poison, poison, poison));
  }
}

// Sums the indices of a block's threads, with many barriers for all of them.
__global__ void SumIds(int* sums) {
  __shared__ int values[1024];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = t;
  for (int step = static_cast<int>(blockDim.x) / 2; step > 0; step /= 2) {
    __syncthreads();
    if (t < step) values[t] += values[t + step];
    __syncwarp();
  }
  if (t == 0) sums[blockIdx.x] = values[0];
}

TEST(ExecutorTest, ABlockOfTheLargestSize) {
  const emulated_cuda::Stats before = emulated_cuda::TotalStats();
  EXPECT_EQ(emulated_cuda::CompareSchedules([] {
              std::vector<int> sums = emulated_cuda::Poisoned<int>(2);
              EXPECT_TRUE(
                  Launch("SumIds", SumIds, Shape(2, 1024), nullptr, sums.data())
                      .ok());
              EXPECT_THAT(sums, ElementsAre(1023 * 512, 1023 * 512));
              return sums;
            }),
            "");
  const emulated_cuda::Stats after = emulated_cuda::TotalStats();
  EXPECT_EQ(after.blocks - before.blocks, 7u * 2);
  EXPECT_EQ(after.threads - before.threads, 7u * 2 * 1024);
  EXPECT_EQ(after.waits - before.waits, 7u * 2 * 1024 * 20);
}

TEST(ExecutorTest, GoesOnAfterAnError) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(ErrorOf([] {
                  Launch("Traps", Traps, Shape(1, 64), nullptr).IgnoreError();
                }),
                HasSubstr("__trap"));
    int sums[1] = {};
    ASSERT_TRUE(
        Launch("SumIds", SumIds, Shape(1, 64), nullptr, static_cast<int*>(sums))
            .ok());
    EXPECT_EQ(sums[0], 63 * 32);
  }
}

TEST(ExecutorTest, ThreadsOfTheHostTakeTurns) {
  int sums[4] = {};
  std::vector<std::thread> threads;
  for (int& sum : sums) {
    threads.emplace_back([&sum] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(Launch("SumIds", SumIds, Shape(1, 64), nullptr, &sum).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(sums, ElementsAre(63 * 32, 63 * 32, 63 * 32, 63 * 32));
}

// Host work runs within the call that enqueues it.
TEST(ImmediateLaunchTest, HostWorkRunsWhenItIsEnqueued) {
  int count = 0;
  emulated_cuda::EnqueueHostWork(nullptr, {"Count", __FILE__, __LINE__},
                                 [&] { ++count; });
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace emulated_cuda_test
