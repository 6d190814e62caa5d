// Queue of tasks that any thread adds and any thread runs.
//
//   TaskQueue queue;
//   queue.Add([] { Compute(); });
//   while (queue.RunNext()) {
//   }
//
// Locks: none is held while a task runs. Threads: any; while the queue is
// empty, RunNext() takes no lock.

#ifndef COMM_SPANNING_FRAMES_TASK_QUEUE_H_
#define COMM_SPANNING_FRAMES_TASK_QUEUE_H_

#include <atomic>
#include <deque>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace troupe::comm::internal {

class TaskQueue {
 public:
  using Task = std::function<void()>;

  void Add(Task task) {
    {
      absl::MutexLock lock(&mutex_);
      tasks_.push_back(std::move(task));
    }
    waiting_.fetch_add(1);
  }

  // Runs the oldest task. Returns false if there is none.
  bool RunNext() {
    if (empty()) return false;
    Task task;
    {
      absl::MutexLock lock(&mutex_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    waiting_.fetch_sub(1);
    task();
    return true;
  }

  bool empty() const { return waiting_.load() <= 0; }

 private:
  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> waiting_{0};
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_FRAMES_TASK_QUEUE_H_
