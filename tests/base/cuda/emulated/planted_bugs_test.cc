// Tests that each planted bug is found and that the correct version of the same
// code is not reported: by differing results of schedules and by reports in
// every build, and by a sanitizer if the test is built with one.

#include "tests/base/cuda/emulated/planted_bugs.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/cuda/emulated/schedules.h"
#include "base/fibers/sanitizers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#if TROUPE_TSAN
extern "C" const char* __tsan_default_options() { return "halt_on_error=1"; }
#endif

namespace emulated_cuda_test {
namespace {

using emulated_cuda::CompareSchedules;
using emulated_cuda::Poisoned;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Values = std::vector<float>;

// Returns values of many magnitudes, so that the bits of a sum depend on its
// order.
Values Numbers(std::size_t count) {
  Values values(count);
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 + state % 97);
  }
  return values;
}

Values RunRowSums(Bug bug) {
  const Values in = Numbers(6 * 256);
  Values out = Poisoned<float>(6 * 4);
  EXPECT_TRUE(RowSums(bug, in.data(), out.data(), 6).ok());
  return out;
}

Values RunShift(Bug bug) {
  const Values in = Numbers(512);
  Values out = Poisoned<float>(512);
  EXPECT_TRUE(Shift(bug, in.data(), out.data(), 512).ok());
  return out;
}

Values RunWarpExchange(Bug bug) {
  const Values in = Numbers(64);
  Values out = Poisoned<float>(64);
  EXPECT_TRUE(WarpExchange(bug, in.data(), out.data()).ok());
  return out;
}

Values RunDiverge(Bug bug) {
  const Values in = Numbers(128);
  Values out = Poisoned<float>(128);
  EXPECT_TRUE(Diverge(bug, in.data(), out.data()).ok());
  return out;
}

std::string ErrorOf(const std::function<Values()>& run) {
  try {
    run();
  } catch (const emulated_cuda::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(PlantedBugsTest, TheRightVersionsAgreeUnderAllSchedules) {
  ASSERT_TRUE(emulated_cuda::StaticSharedIsPoisoned());
  EXPECT_EQ(CompareSchedules([] { return RunRowSums(Bug::kNone); }), "");
  EXPECT_EQ(CompareSchedules([] { return RunShift(Bug::kNone); }), "");
  EXPECT_EQ(CompareSchedules([] { return RunWarpExchange(Bug::kNone); }), "");
  EXPECT_EQ(CompareSchedules([] { return RunDiverge(Bug::kNone); }), "");
}

// Wrong masks and divergence: an error that names kernel, block and threads.

TEST(PlantedBugsTest, AMaskThatLacksTheCaller) {
  const std::string text =
      ErrorOf([] { return RunRowSums(Bug::kMaskLacksTheCaller); });
  EXPECT_THAT(text,
              AllOf(HasSubstr("thread 16 (lane 16) calls __shfl_xor_sync at "
                              "tests/base/cuda/emulated/planted_bugs.cu:"),
                    HasSubstr("with mask 0x0000ffff, which lacks its own lane"),
                    HasSubstr("in RowSums, launched at "
                              "tests/base/cuda/emulated/planted_bugs.cu:"),
                    HasSubstr("block (0,0,0) of grid (6,1,1)")));
}

TEST(PlantedBugsTest, AMaskThatNamesLanesThatAreElsewhere) {
  EXPECT_THAT(
      ErrorOf([] { return RunRowSums(Bug::kMaskNamesAbsentLanes); }),
      AllOf(HasSubstr("deadlock"), HasSubstr("threads 0-15, 32-47, 64-79, "),
            HasSubstr("wait at __shfl_xor_sync(mask 0xffffffff) "),
            HasSubstr("threads 16-31, 48-63, "),
            HasSubstr("wait at __syncthreads ")));
}

TEST(PlantedBugsTest, AShuffleThatReadsALaneOutsideItsMask) {
  EXPECT_THAT(ErrorOf([] { return RunRowSums(Bug::kReadsOutsideMask); }),
              AllOf(HasSubstr("(lane 0) reads lane 16, which takes no part in "
                              "__shfl_xor_sync at "),
                    HasSubstr("taking part 0x0000ffff")));
}

TEST(PlantedBugsTest, ABarrierInOneBranch) {
  EXPECT_THAT(ErrorOf([] { return RunDiverge(Bug::kBarrierInOneBranch); }),
              AllOf(HasSubstr("the threads of a block met at different "
                              "barriers"),
                    HasSubstr("\n  threads 0-39 wait at __syncthreads "),
                    HasSubstr("\n  threads 40-127 wait at __syncthreads ")));
}

TEST(PlantedBugsTest, TwoBarriersInTwoBranches) {
  EXPECT_THAT(ErrorOf([] { return RunDiverge(Bug::kTwoBarriers); }),
              AllOf(HasSubstr("met at different barriers"),
                    HasSubstr("\n  threads 0-63 wait at __syncthreads "),
                    HasSubstr("\n  threads 64-127 wait at __syncthreads ")));
}

TEST(PlantedBugsTest, ABarrierAgainstAShuffle) {
  EXPECT_THAT(ErrorOf([] { return RunDiverge(Bug::kBarrierAgainstShuffle); }),
              AllOf(HasSubstr("deadlock"),
                    HasSubstr("threads 0, 32, 64, 96 wait at __syncthreads "),
                    HasSubstr("threads 1-31, 33-63, 65-95, 97-127 wait at "
                              "__shfl_sync(mask 0xffffffff) ")));
}

TEST(PlantedBugsTest, AShuffleInALoopOfUnevenLength) {
  EXPECT_THAT(ErrorOf([] { return RunDiverge(Bug::kUnevenLoop); }),
              AllOf(HasSubstr("deadlock"),
                    HasSubstr("threads 0-63, 72-127 wait at __syncthreads "),
                    HasSubstr("threads 64-71 wait at __shfl_xor_sync(")));
}

// They are found under every schedule, not only under the forward one.
TEST(PlantedBugsTest, DeadlocksAreFoundUnderEverySchedule) {
  for (const emulated_cuda::Schedule& schedule :
       emulated_cuda::AllSchedules()) {
    const emulated_cuda::ScopedSchedule scoped(schedule);
    for (const Bug bug : {Bug::kBarrierInOneBranch, Bug::kTwoBarriers,
                          Bug::kBarrierAgainstShuffle, Bug::kUnevenLoop}) {
      EXPECT_NE(ErrorOf([&] { return RunDiverge(bug); }), "no error")
          << emulated_cuda::ToString(schedule);
    }
    EXPECT_EQ(ErrorOf([] { return RunDiverge(Bug::kNone); }), "no error");
  }
}

// Races, reads before a write, forgotten outputs: the schedules differ, and
// ThreadSanitizer names the races.

#if TROUPE_TSAN

void ExpectRace(const std::function<Values()>& run) {
  EXPECT_DEATH(run(), "data race.*planted_bugs.cu:.*CUDA thread");
}

#else

void ExpectCaught(const std::function<Values()>& run) {
  EXPECT_THAT(CompareSchedules(run), HasSubstr("elements differ from the "
                                               "forward order, seed 1, poison "
                                               "0xff, the first at index "));
}

void ExpectRace(const std::function<Values()>& run) { ExpectCaught(run); }

TEST(PlantedBugsTest, StaticSharedMemoryReadBeforeItIsWritten) {
  ExpectCaught([] { return RunShift(Bug::kStaticUninitialised); });
}

TEST(PlantedBugsTest, DynamicSharedMemoryReadBeforeItIsWritten) {
  ExpectCaught([] { return RunShift(Bug::kDynamicUninitialised); });
}

TEST(PlantedBugsTest, AnOutputThatIsNotWritten) {
  ExpectCaught([] { return RunShift(Bug::kSkipsAnOutput); });
}

TEST(PlantedBugsTest, TwoBlocksThatWriteOneElement) {
  ExpectCaught([] { return RunShift(Bug::kSpillsToNextBlock); });
}

TEST(PlantedBugsTest, FloatAtomics) {
  ExpectCaught([] {
    const Values in = Numbers(2000);
    Values out(1, 0.0f);
    EXPECT_TRUE(FloatAtomicSum(in.data(), out.data(), 2000).ok());
    return out;
  });
}

#endif

TEST(PlantedBugsTest, NoBarrierAfterAWrite) {
  ExpectRace([] { return RunRowSums(Bug::kNoSyncAfterWrite); });
}

TEST(PlantedBugsTest, NoBarrierBeforeReuse) {
  ExpectRace([] { return RunRowSums(Bug::kNoSyncBeforeReuse); });
}

TEST(PlantedBugsTest, NoBarrierAtAll) {
  ExpectRace([] { return RunShift(Bug::kNoSync); });
}

TEST(PlantedBugsTest, NoSyncwarp) {
  ExpectRace([] { return RunWarpExchange(Bug::kNoSyncwarp); });
}

TEST(PlantedBugsTest, ASyncwarpWhereTheBlockMustMeet) {
  ExpectRace([] { return RunWarpExchange(Bug::kSyncwarpAcrossWarps); });
}

// Race detection between the grids of several streams (RaceScope::kStreams).

class RaceScopeTest : public ::testing::Test {
 protected:
  RaceScopeTest() {
    emulated_cuda::SetRaceScope(emulated_cuda::RaceScope::kStreams);
  }
  ~RaceScopeTest() override {
    emulated_cuda::SetRaceScope(emulated_cuda::RaceScope::kThreads);
  }
};

TEST_F(RaceScopeTest, ThreadsOfAGridAreNotCompared) {
  EXPECT_EQ(RunShift(Bug::kNoSync).size(), 512u);
  EXPECT_EQ(CompareSchedules([] { return RunRowSums(Bug::kNone); }), "");
}

#if TROUPE_TSAN
TEST_F(RaceScopeTest, GridsOfTwoThreadsAreNotOrderedByTheExecutor) {
  // Re-executes the test: after a plain fork, the sanitizer ignores the only
  // remaining thread.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Values in = Numbers(64);
  Values out(64);
  const auto two_streams = [&](float* first, float* second) {
    std::thread other(
        [&] { WarpExchange(Bug::kNone, in.data(), first).IgnoreError(); });
    WarpExchange(Bug::kNone, in.data(), second).IgnoreError();
    other.join();
  };
  EXPECT_DEATH(two_streams(out.data(), out.data()),
               "data race.*WarpExchangeKernel");
  Values own(64);
  two_streams(out.data(), own.data());
  EXPECT_EQ(out, own);
}
#endif

// Out of bounds: AddressSanitizer, and for arrays of known size
// UndefinedBehaviorSanitizer.

#if TROUPE_ASAN
TEST(PlantedBugsTest, OutOfBounds) {
  EXPECT_DEATH(RunShift(Bug::kWritesPastGlobal),
               "heap-buffer-overflow.*\n.*WRITE of size 4");
  EXPECT_DEATH(RunShift(Bug::kReadsPastGlobal),
               "heap-buffer-overflow.*\n.*READ of size 4");
  EXPECT_DEATH(RunShift(Bug::kWritesPastDynamic),
               "heap-buffer-overflow.*\n.*WRITE of size 4");
  EXPECT_DEATH(RunShift(Bug::kWritesPastStatic),
               "index 131 out of bounds for type 'float ?\\[128\\]'");
}
#endif

}  // namespace
}  // namespace emulated_cuda_test
