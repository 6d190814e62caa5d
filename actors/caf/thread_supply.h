// The threads of a job. All are started before its first actor; each runs one
// task. If a limit on processes (ulimit -u, a container's pids limit) or on
// memory is exceeded, that shows here and not in the middle of spawning, where
// it would leave actors that wait for others for ever.
//
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ThreadSupply> threads,
//                           ThreadSupply::Start(JobThreads(ranks)));
//   threads->Run([&] { lane.Run(); });
//   threads->Join();
//
// Threads: Run() may be called from any thread. Join() is called from one,
// after the last Run().

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

// Returns the number of threads that a job with `ranks` ranks in this process
// needs (docs/threads.md).
int JobThreads(int ranks);
// The same for a program of the user's own (actors/program).
int ProgramThreads(int ranks);

// Starts a thread that runs the function. Throws std::system_error if the
// system refuses the thread.
using ThreadStarter = std::function<std::thread(std::function<void()>)>;

// Prepares the calling thread, before it joins the supply; called by one thread
// at a time. Returns false if there is no memory for it.
using ThreadPreparer = std::function<bool()>;

class ThreadSupply {
 public:
  // Starts `count` threads, which wait for tasks. `prepare` may be null.
  //   kResourceExhausted: the system refused a thread, or its memory. The
  //     message says which, and what to do.
  static absl::StatusOr<std::unique_ptr<ThreadSupply>> Start(
      int count, const ThreadPreparer& prepare = nullptr);
  static absl::StatusOr<std::unique_ptr<ThreadSupply>> Start(
      int count, const ThreadStarter& start,
      const ThreadPreparer& prepare = nullptr);

  ~ThreadSupply() { Join(); }
  ThreadSupply(const ThreadSupply&) = delete;
  ThreadSupply& operator=(const ThreadSupply&) = delete;

  // Runs `task` in a thread that has not run one yet. One must be left.
  void Run(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends threads without a task, and waits until every task has returned.
  void Join() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ThreadSupply() = default;

  absl::Status StartThreads(int count, const ThreadStarter& start,
                            const ThreadPreparer& prepare);
  // Body of each thread.
  void RunOneTask(const ThreadPreparer& prepare) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasTaskOrIsClosed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return closed_ || !tasks_.empty();
  }

  absl::Mutex mutex_;
  // Number of threads that have called prepare(), and whether any call failed.
  std::size_t prepared_ ABSL_GUARDED_BY(mutex_) = 0;
  bool unprepared_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  // Number of threads without a task.
  std::size_t left_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CAF_THREAD_SUPPLY_H_
