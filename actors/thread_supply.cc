#include "actors/thread_supply.h"

#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

constexpr int kStrandsOfRank = 3;  // loader, compute, comm
constexpr int kStrandsOfJob = 3;   // supervisor, checkpointer, reporter
constexpr int kThreadsShared = 2;  // rank actors; the clock

}  // namespace

int JobThreads(int ranks) {
  return kStrandsOfRank * ranks + kStrandsOfJob + kThreadsShared;
}

absl::StatusOr<std::unique_ptr<ThreadSupply>> ThreadSupply::Start(int count) {
  return Start(count, [](std::function<void()> run) {
    return std::thread(std::move(run));
  });
}

absl::StatusOr<std::unique_ptr<ThreadSupply>> ThreadSupply::Start(
    int count, const ThreadStarter& start) {
  auto supply = absl::WrapUnique(new ThreadSupply());
  TROUPE_RETURN_IF_ERROR(supply->StartThreads(count, start));
  return supply;
}

absl::Status ThreadSupply::StartThreads(int count, const ThreadStarter& start) {
  threads_.reserve(count);
  try {
    for (int i = 0; i < count; ++i) {
      threads_.push_back(start([this] { RunOneTask(); }));
    }
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the system refuses thread ", threads_.size() + 1, " of the ", count,
        " of the job: ", error.code().message(),
        "; raise its limits (ulimit -u and -v, or the pids limit of the "
        "container), or use fewer ranks"));
  }
  absl::MutexLock lock(&mutex_);
  left_ = threads_.size();
  return absl::OkStatus();
}

void ThreadSupply::RunOneTask() {
  std::function<void()> task;
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &ThreadSupply::HasTaskOrIsClosed));
    if (tasks_.empty()) return;
    task = std::move(tasks_.back());
    tasks_.pop_back();
  }
  task();
}

void ThreadSupply::Run(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  TROUPE_CHECK(left_ > 0, "a thread is left for each task");
  --left_;
  tasks_.push_back(std::move(task));
}

void ThreadSupply::Join() {
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace troupe::actors
