// Tests that ThreadSanitizer reports a missing wait, between two streams or
// between a stream and the host, with the places that enqueued both operations,
// and reports nothing for correct code. Each case runs in a process of its own,
// since a race is reported only once per process.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <ostream>

#include "gtest/gtest.h"
#include "tests/base/cuda/emulated/runtime_test_util.h"
#include "tests/base/cuda/emulated/two_rank_step.h"

namespace emulated_cuda_test {
namespace {

// Exit code with which ThreadSanitizer ends a process that has reports.
constexpr int kRacesCode = 66;

class RaceReportsDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!kUnderTsan) GTEST_SKIP() << "for ThreadSanitizer";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

__attribute__((noinline)) void EnqueueFill(void* x, cudaStream_t stream) {
  cudaMemsetAsync(x, 1, 64, stream);
}

__attribute__((noinline)) void EnqueueCopy(void* to, const void* from,
                                           cudaStream_t stream) {
  cudaMemcpyAsync(to, from, 64, cudaMemcpyDefault, stream);
}

// One stream fills x, another copies it to pinned memory, the host reads that.
void FillCopyAndRead(bool streams_wait, bool host_waits) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    NewWorld(seed);
    const cudaStream_t first = NewStream();
    const cudaStream_t second = NewStream();
    const cudaEvent_t filled = NewEvent();
    char* const x = OnDevice<char>(64);
    char* const pinned = PinnedMemory<char>(64);
    EnqueueFill(x, first);
    cudaEventRecord(filled, first);
    if (streams_wait) cudaStreamWaitEvent(second, filled, 0);
    EnqueueCopy(pinned, x, second);
    if (host_waits) cudaStreamSynchronize(second);
    EXPECT_NE(pinned[5], 0) << "poison or the fill: read is all it must be";
    cudaDeviceSynchronize();
    cudaFree(x);
    cudaFreeHost(pinned);
    cudaEventDestroy(filled);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
  std::exit(0);
}

TEST_F(RaceReportsDeathTest, RightCodeIsSilent) {
  EXPECT_EXIT(FillCopyAndRead(true, true), testing::ExitedWithCode(0), "");
}

TEST_F(RaceReportsDeathTest, AMissingWaitBetweenStreams) {
  EXPECT_EXIT(FillCopyAndRead(false, true), testing::ExitedWithCode(kRacesCode),
              "data race.*(EnqueueCopy.*EnqueueFill|EnqueueFill.*EnqueueCopy)"
              ".*stream [01] of device 0");
}

TEST_F(RaceReportsDeathTest, AMissingWaitOfTheHost) {
  EXPECT_EXIT(FillCopyAndRead(true, false), testing::ExitedWithCode(kRacesCode),
              "data race.*(FillCopyAndRead.*EnqueueCopy|"
              "EnqueueCopy.*FillCopyAndRead)");
}

void Train(const StepOptions& options) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    NewWorld(seed);
    TrainTwoRanks(options);
  }
  std::exit(0);
}

struct Case {
  Bug bug;
  bool graph;
  bool nonblocking;
  // Whether the bug is a race; a frozen value or an error of a call is none.
  bool is_race;
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << NameOf(c.bug) << (c.graph ? ", graph" : ", eager");
  }
};

class StepRacesDeathTest : public RaceReportsDeathTest,
                           public testing::WithParamInterface<Case> {};

TEST_P(StepRacesDeathTest, IsNamedIfItIsARace) {
  StepOptions options;
  options.bug = GetParam().bug;
  options.graph = GetParam().graph;
  options.nonblocking = GetParam().nonblocking;
  EXPECT_EXIT(Train(options),
              testing::ExitedWithCode(GetParam().is_race ? kRacesCode : 0),
              GetParam().is_race ? "data race.*Training::.*Training::" : "");
}

INSTANTIATE_TEST_SUITE_P(
    All, StepRacesDeathTest,
    testing::Values(Case{Bug::kNone, false, false, false},
                    Case{Bug::kNone, false, true, false},
                    Case{Bug::kNone, true, false, false},
                    Case{Bug::kNoWaitForGradient, false, false, true},
                    Case{Bug::kNoWaitForParameter, false, false, true},
                    Case{Bug::kLossReadEarly, true, false, true},
                    Case{Bug::kFreedEarly, false, false, true},
                    Case{Bug::kSlotReusedEarly, false, false, true},
                    Case{Bug::kUsedBeforeMalloc, false, false, true},
                    Case{Bug::kWrongEvent, false, false, true},
                    Case{Bug::kEventTooSoon, true, false, true},
                    Case{Bug::kNullStream, false, false, true},
                    Case{Bug::kScalarByValue, true, false, false}));

}  // namespace
}  // namespace emulated_cuda_test
