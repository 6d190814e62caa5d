#include "actors/caf/thread_supply.h"

#include <atomic>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

TEST(ThreadSupply, RunsEachTaskInAThreadOfItsOwnThatIsThereBefore) {
  std::atomic<int> started{0}, ended{0};
  const auto start = [&](std::function<void()> run) {
    ++started;
    return std::thread([&ended, run = std::move(run)] {
      run();
      ++ended;
    });
  };
  auto threads = ThreadSupply::Start(3, start);
  ASSERT_TRUE(threads.ok()) << threads.status();
  EXPECT_EQ(started, 3);
  // Each task waits for the other.
  absl::Notification first, second;
  (*threads)->Run([&] {
    first.Notify();
    second.WaitForNotification();
  });
  (*threads)->Run([&] {
    first.WaitForNotification();
    second.Notify();
  });
  (*threads)->Join();
  EXPECT_EQ(ended, 3) << "with the one that had no task";
  EXPECT_EQ(started, 3);
}

TEST(ThreadSupplyDeathTest, HasOneThreadForATask) {
  EXPECT_DEATH(
      {
        auto threads = ThreadSupply::Start(1).value();
        threads->Run([] {});
        threads->Run([] {});
      },
      "a thread is left for each task");
}

int ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

// Counts the threads after the first step: by then all actors are spawned, and
// the threads that filled the parameters have ended.
class ThreadCounter : public JobObserver {
 public:
  void OnSteps(absl::Span<const StepReport>) override {
    if (threads == 0) threads = ThreadsOfThisProcess();
  }
  int threads = 0;
};

// Runs one job only, since threads of an earlier one may not have ended yet.
TEST(ThreadSupply, AsksForAsManyThreadsAsAJobHas) {
  ThreadCounter counter;
  ASSERT_TRUE(RunJob(TinyCnnJob(4, 50), &counter).ok());
  EXPECT_EQ(counter.threads, JobThreads(4) + 1) << "with this one";
}

TEST(ThreadSupply, ARefusedThreadIsAnErrorThatSaysWhatToDo) {
  int started = 0;
  std::atomic<int> ended{0};
  const auto start = [&](std::function<void()> run) {
    if (++started == 7) {
      throw std::system_error(
          std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    return std::thread([&ended, run = std::move(run)] {
      run();
      ++ended;
    });
  };
  const absl::Status status = ThreadSupply::Start(11, start).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the system refuses thread 7 of the 11 of the job: Resource "
            "temporarily unavailable; raise its limits (ulimit -u and -v, or "
            "the pids limit of the container), or use fewer ranks");
  EXPECT_EQ(ended, 6) << "none is left behind";
}

TEST(ThreadSupply, PreparesEachThreadBeforeItIsThere) {
  int prepared = 0;  // not atomic: prepare() is called by one thread at a time
  const auto threads = ThreadSupply::Start(5, [&] {
    ++prepared;
    return true;
  });
  ASSERT_TRUE(threads.ok()) << threads.status();
  EXPECT_EQ(prepared, 5);
}

TEST(ThreadSupply, AThreadWithoutMemoryIsAnErrorThatSaysWhatToDo) {
  int prepared = 0;
  const absl::Status status =
      ThreadSupply::Start(5, [&] { return ++prepared != 3; }).status();
  EXPECT_EQ(prepared, 5);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      status.message(),
      "the system refuses memory for a thread of the 5 of the job: Cannot "
      "allocate memory; raise its limits (ulimit -u and -v, or the pids "
      "limit of the container), or use fewer ranks");
}

}  // namespace
}  // namespace troupe::actors
