// Tests that operations of streams run in all orders that streams and events
// permit, and in no other.

#include <cuda_runtime_api.h>

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/base/cuda/emulated/runtime_test_util.h"
#include "tests/base/seeds.h"

namespace emulated_cuda_test {
namespace {

using troupe::EverySeed;
using troupe::ReplayCommand;

using Orders = std::set<std::string>;
const Orders kAllSix = {"abxy", "axby", "axyb", "xaby", "xayb", "xyab"};

// Writes one letter when its turn comes.
struct Note {
  std::string* text;
  char letter;
  static void Write(void* self) {
    auto* const note = static_cast<Note*>(self);
    note->text->push_back(note->letter);
  }
};

// Returns all orders in which a, b on one stream and x, y on another run.
// `wait`: x waits for a.
Orders OrdersOf(unsigned first_flags, bool second_is_null, bool wait) {
  Orders orders;
  for (std::uint64_t seed : EverySeed(400)) {
    NewWorld(seed);
    std::string text;
    Note notes[] = {{&text, 'a'}, {&text, 'b'}, {&text, 'x'}, {&text, 'y'}};
    const cudaStream_t first = NewStream(first_flags);
    const cudaStream_t second = second_is_null ? nullptr : NewStream();
    const cudaEvent_t event = NewEvent();
    cudaLaunchHostFunc(first, Note::Write, &notes[0]);
    cudaEventRecord(event, first);
    if (wait) cudaStreamWaitEvent(second, event, 0);
    cudaLaunchHostFunc(second, Note::Write, &notes[2]);
    cudaLaunchHostFunc(first, Note::Write, &notes[1]);
    cudaLaunchHostFunc(second, Note::Write, &notes[3]);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    orders.insert(text);
  }
  return orders;
}

// All operations write to one string, which is a race on purpose.
TEST(StreamOrderTest, AllInterleavingsOccurAndNoOther) {
  if (kUnderTsan) GTEST_SKIP() << "races on purpose";
  EXPECT_EQ(OrdersOf(cudaStreamNonBlocking, false, false), kAllSix);
}

TEST(StreamOrderTest, AnEventLeavesExactlyTheLegalOnes) {
  if (kUnderTsan) GTEST_SKIP() << "races on purpose";
  EXPECT_EQ(OrdersOf(cudaStreamNonBlocking, false, true),
            (Orders{"abxy", "axby", "axyb"}));
}

TEST(StreamOrderTest, TheNullStreamIsOrderedWithBlockingStreamsOnly) {
  if (kUnderTsan) GTEST_SKIP() << "races on purpose";
  EXPECT_EQ(OrdersOf(cudaStreamDefault, true, false), Orders{"axby"});
  EXPECT_EQ(OrdersOf(cudaStreamNonBlocking, true, false), kAllSix);
}

void IncrementCount(void* number) { ++*static_cast<int*>(number); }

TEST(StreamOrderTest, NothingHasToRunWhenItIsEnqueued) {
  std::set<int> seen;
  for (std::uint64_t seed : EverySeed(100)) {
    NewWorld(seed);
    int ran = 0;
    const cudaStream_t stream = NewStream();
    cudaLaunchHostFunc(stream, IncrementCount, &ran);
    if (cudaStreamQuery(stream) == cudaErrorNotReady) {
      EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
      seen.insert(0);
    } else {
      EXPECT_EQ(ran, 1) << ReplayCommand(seed);
      seen.insert(1);
    }
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    ASSERT_EQ(ran, 1);
    cudaStreamDestroy(stream);
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
  EXPECT_EQ(seen, (std::set<int>{0, 1}));
}

TEST(StreamOrderTest, AnEventSaysWhenItIsReached) {
  for (std::uint64_t seed : EverySeed(100)) {
    NewWorld(seed);
    const cudaStream_t stream = NewStream();
    const cudaEvent_t event = NewEvent();
    int ran = 0;
    ASSERT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
    cudaLaunchHostFunc(stream, IncrementCount, &ran);
    ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    int polls = 0;
    while (cudaEventQuery(event) == cudaErrorNotReady) {
      ASSERT_LT(++polls, 1000) << ReplayCommand(seed);
    }
    ASSERT_EQ(ran, 1);  // the query orders this read for ThreadSanitizer
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    ASSERT_EQ(AllProblems(), "") << ReplayCommand(seed);
  }
}

TEST(StreamOrderTest, ARecordedAgainEventStandsForTheNewPlace) {
  for (std::uint64_t seed : EverySeed(50)) {
    NewWorld(seed);
    const cudaStream_t stream = NewStream();
    const cudaEvent_t event = NewEvent();
    int ran = 0;
    for (int i = 1; i <= 3; ++i) {
      cudaLaunchHostFunc(stream, IncrementCount, &ran);
      cudaEventRecord(event, stream);
      ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
      ASSERT_EQ(ran, i) << ReplayCommand(seed);
    }
  }
}

TEST(StreamOrderTest, TimeIsVirtualAndGoesForward) {
  NewWorld(1);
  const cudaStream_t stream = NewStream();
  const cudaEvent_t begin = NewEvent(cudaEventDefault);
  const cudaEvent_t end = NewEvent(cudaEventDefault);
  const cudaEvent_t without = NewEvent(cudaEventDisableTiming);
  float ms = -1;
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, end),
            cudaErrorInvalidResourceHandle);
  cudaEventRecord(begin, stream);
  int ran = 0;
  for (int i = 0; i < 100; ++i)
    cudaLaunchHostFunc(stream, IncrementCount, &ran);
  cudaEventRecord(end, stream);
  cudaEventRecord(without, stream);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
  EXPECT_GT(ms, 0.1f);
  EXPECT_LT(ms, 1.1f);
  EXPECT_EQ(cudaEventElapsedTime(&ms, begin, without),
            cudaErrorInvalidResourceHandle);
}

TEST(StreamOrderTest, PrioritiesAreKeptAndClamped) {
  NewWorld(1);
  int least = -1;
  int greatest = 1;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  EXPECT_GT(least, greatest);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 9);
  int priority = 0;
  ASSERT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
  EXPECT_EQ(priority, greatest);
  unsigned flags = 0;
  ASSERT_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
  EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
}

TEST(StreamOrderTest, ASeedIsAnOrder) {
  std::set<std::uint64_t> hashes;
  std::string first_trace;
  for (int repeat = 0; repeat < 3; ++repeat) {
    emulated_cuda::Options options = OneThread(7);
    options.trace = true;
    emulated_cuda::Reset(options);
    const cudaStream_t streams[] = {NewStream(), NewStream(), NewStream()};
    int ran[3] = {};
    for (int i = 0; i < 30; ++i) {
      cudaLaunchHostFunc(streams[i % 3], IncrementCount, &ran[i % 3]);
    }
    cudaDeviceSynchronize();
    hashes.insert(emulated_cuda::TraceHash());
    if (repeat == 0) first_trace = emulated_cuda::Trace();
    EXPECT_EQ(emulated_cuda::Trace(), first_trace);
    EXPECT_EQ(emulated_cuda::Counts().executed, 30u);
  }
  EXPECT_EQ(hashes.size(), 1u);
  EXPECT_NE(first_trace.find("stream 1 of device 0 #3 cudaLaunchHostFunc\n"),
            std::string::npos)
      << first_trace;
}

TEST(StreamOrderTest, WhatNobodyWaitedForIsReported) {
  emulated_cuda::Options options = OneThread(0);
  bool reported = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    options.seed = seed;
    emulated_cuda::Reset(options);
    int ran = 0;
    const cudaStream_t stream = NewStream();
    for (int i = 0; i < 9; ++i)
      cudaLaunchHostFunc(stream, IncrementCount, &ran);
    cudaStreamDestroy(stream);
    const std::string problems = AllProblems();
    EXPECT_EQ(problems.empty(), emulated_cuda::Counts().executed == 9)
        << problems;
    reported = reported || problems.find("never ran") != std::string::npos;
  }
  EXPECT_TRUE(reported);
}

}  // namespace
}  // namespace emulated_cuda_test
