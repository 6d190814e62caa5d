#include "actors/thread_supply.h"

#include <atomic>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

TEST(ThreadSupply, StartsAllThreadsOfAJobAtOnceAndEndsThem) {
  std::atomic<int> started{0}, running{0};
  const auto start = [&](std::function<void()> run) {
    ++started;
    return std::thread([&running, run = std::move(run)] {
      ++running;
      run();
      --running;
    });
  };
  EXPECT_TRUE(CheckThreadSupply(2, start).ok());
  EXPECT_EQ(started, JobThreads(2));
  EXPECT_EQ(running, 0);
}

int ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// Looks when the first step is done: all actors are there, and the helpers that
// filled the parameters are gone.
class ThreadCounter : public JobObserver {
 public:
  void OnSteps(absl::Span<const StepReport>) override {
    if (threads == 0) threads = ThreadsOfThisProcess();
  }
  int threads = 0;
};

// One job only: threads of an earlier one may still be on their way out.
TEST(ThreadSupply, AsksForAsManyThreadsAsAJobHas) {
  ThreadCounter counter;
  ASSERT_TRUE(RunJob(TinyCnnJob(4, 50), &counter).ok());
  EXPECT_EQ(counter.threads, JobThreads(4) + 1) << "with this one";
}

TEST(ThreadSupply, ARefusedThreadIsAnErrorThatSaysWhatToDo) {
  int started = 0;
  const auto start = [&](std::function<void()> run) {
    if (++started == 7) {
      throw std::system_error(
          std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    return std::thread(std::move(run));
  };
  const absl::Status status = CheckThreadSupply(2, start);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the system refuses thread 7 of the 12 of a job of 2 ranks: "
            "Resource temporarily unavailable; raise its limit (ulimit -u, or "
            "the pids limit of the container), or use fewer ranks");
}

}  // namespace
}  // namespace troupe::actors
