// A thread that polls for completed CUDA events and wakes the device's strand.
// It polls because a callback of the driver (cudaLaunchHostFunc) would delay
// the stream.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       std::unique_ptr<Watcher> watcher,
//       Watcher::Start(/*ordinal=*/0, [] { WakeTheStrand(); }));
//   watcher->Watch({mark});          // wakes once, when `mark` is done
//   watcher->Watch({mark}, absl::Milliseconds(10));   // or when that is over
//
// It completes no event: the strand calls CudaDevice::Progress(), which calls
// Watch() again. The thread sleeps on a condition variable while it watches
// nothing; otherwise it polls, at first every 10 us, then at intervals that
// double up to 200 us: a step of a small network takes 100 us.
//
// Threads: any; the wakeup runs on the watcher's thread, without a lock held.

#ifndef NN_KERNELS_CUDA_DEVICE_WATCHER_H_
#define NN_KERNELS_CUDA_DEVICE_WATCHER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "nn/kernels/cuda/device/event_pool.h"

namespace troupe::nn::cuda {

class Watcher {
 public:
  using Marks = std::vector<std::shared_ptr<const EventMark>>;

  //   kResourceExhausted: the system refused to start the thread.
  static absl::StatusOr<std::unique_ptr<Watcher>> Start(
      int ordinal, std::function<void()> wakeup);
  // Joins the thread.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Calls the wakeup when any of `marks` is done or has failed, or after
  // `at_most`. Replaces the marks of earlier calls.
  void Watch(Marks marks, absl::Duration at_most = absl::InfiniteDuration())
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Number of unsuccessful polls so far; a watcher that sleeps does not poll.
  std::int64_t looks() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit Watcher(std::function<void()> wakeup) : wakeup_(std::move(wakeup)) {}

  void Run(int ordinal) ABSL_LOCKS_EXCLUDED(mutex_);
  // The marks to watch, and the time at which to wake at the latest.
  struct Task {
    Marks marks;
    absl::Time until = absl::InfiniteFuture();

    bool none() const {
      return marks.empty() && until == absl::InfiniteFuture();
    }
  };
  // Polls until a mark is done or the time is over (returns true), or until the
  // task is replaced or the watcher ends (returns false).
  bool Poll(const Task& task, std::uint64_t round) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<void()> wakeup_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  Task task_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t round_ ABSL_GUARDED_BY(mutex_) = 0;  // calls of Watch()
  std::int64_t looks_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_WATCHER_H_
