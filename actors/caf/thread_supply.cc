#include "actors/caf/thread_supply.h"

#include <errno.h>

#include <string>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

constexpr int kStrandsOfRank = 3;         // loader, compute, comm
constexpr int kStrandsOfProgramRank = 2;  // compute, comm
constexpr int kStrandsOfJob = 3;          // supervisor, checkpointer, reporter
constexpr int kThreadsShared = 2;         // rank actors; the clock

absl::Status Refused(const std::string& what, int count,
                     const std::string& why) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the system refuses ", what, " of the ", count, " of the job: ", why,
      "; raise its limits (ulimit -u and -v, or the pids limit of the "
      "container), or use fewer ranks"));
}

}  // namespace

int JobThreads(int ranks) {
  return kStrandsOfRank * ranks + kStrandsOfJob + kThreadsShared;
}

int ProgramThreads(int ranks) {
  return kStrandsOfProgramRank * ranks + kThreadsShared;
}

absl::StatusOr<std::unique_ptr<ThreadSupply>> ThreadSupply::Start(
    int count, const ThreadPreparer& prepare) {
  const auto start = [](std::function<void()> run) {
    return std::thread(std::move(run));
  };
  return Start(count, start, prepare);
}

absl::StatusOr<std::unique_ptr<ThreadSupply>> ThreadSupply::Start(
    int count, const ThreadStarter& start, const ThreadPreparer& prepare) {
  auto supply = absl::WrapUnique(new ThreadSupply());
  TROUPE_RETURN_IF_ERROR(supply->StartThreads(count, start, prepare));
  return supply;
}

absl::Status ThreadSupply::StartThreads(int count, const ThreadStarter& start,
                                        const ThreadPreparer& prepare) {
  threads_.reserve(count);
  try {
    for (int i = 0; i < count; ++i) {
      threads_.push_back(start([this, prepare] { RunOneTask(prepare); }));
    }
  } catch (const std::system_error& error) {
    return Refused(absl::StrCat("thread ", threads_.size() + 1), count,
                   error.code().message());
  }
  absl::MutexLock lock(&mutex_);
  const auto all_prepared = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return prepared_ == threads_.size();
  };
  mutex_.Await(absl::Condition(&all_prepared));
  if (unprepared_) {
    return Refused("memory for a thread", count,
                   std::generic_category().message(ENOMEM));
  }
  left_ = threads_.size();
  return absl::OkStatus();
}

void ThreadSupply::RunOneTask(const ThreadPreparer& prepare) {
  std::function<void()> task;
  {
    absl::MutexLock lock(&mutex_);
    if (prepare != nullptr && !prepare()) unprepared_ = true;
    ++prepared_;
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
