// The threads of a job: all started before its first actor, and kept until each
// has run what it is for. A limit on processes (ulimit -u, a container's pids
// limit) or on memory is met here, or not at all: in the middle of a spawn it
// would leave actors behind that wait for others.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadSupply> threads,
//                           ThreadSupply::Start(JobThreads(ranks)));
//   threads->Run([&] { lane.Run(); });
//   threads->Join();
//
// Threads: any may call Run(); one calls Join(), when no more Run() comes.

#ifndef ACTORS_CAF_THREAD_SUPPLY_H_
#define ACTORS_CAF_THREAD_SUPPLY_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace troupe::actors {

// Number of threads of a job with `ranks` ranks in this process:
// docs/threads.md.
int JobThreads(int ranks);

// Starts a thread that runs the function; throws std::system_error where there
// is none to be had.
using ThreadStarter = std::function<std::thread(std::function<void()>)>;

// What each thread does before it is part of the supply, one at a time. False:
// it has no memory for that.
using ThreadPreparer = std::function<bool()>;

class ThreadSupply {
 public:
  // Starts `count` threads, which wait for what they shall run. `prepare` may
  // be null.
  //   kResourceExhausted: one was refused, or its memory; says which, and what
  //     to do.
  static absl::StatusOr<std::unique_ptr<ThreadSupply>> Start(
      int count, const ThreadPreparer& prepare = nullptr);
  static absl::StatusOr<std::unique_ptr<ThreadSupply>> Start(
      int count, const ThreadStarter& start,
      const ThreadPreparer& prepare = nullptr);

  ~ThreadSupply() { Join(); }
  ThreadSupply(const ThreadSupply&) = delete;
  ThreadSupply& operator=(const ThreadSupply&) = delete;

  // Runs `task` in a thread that has run none. There must be one.
  void Run(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until every task has returned; threads without one end.
  void Join() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ThreadSupply() = default;

  absl::Status StartThreads(int count, const ThreadStarter& start,
                            const ThreadPreparer& prepare);
  // What each thread runs.
  void RunOneTask(const ThreadPreparer& prepare) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasTaskOrIsClosed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || !tasks_.empty();
  }

  absl::Mutex mutex_;
  // Threads that prepare() was called for; whether one had no memory for it.
  std::size_t prepared_ ABSL_GUARDED_BY(mutex_) = 0;
  bool unprepared_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::size_t left_ ABSL_GUARDED_BY(mutex_) = 0;  // threads without a task
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CAF_THREAD_SUPPLY_H_
