// A thread that looks for events of a device to complete, so that nobody has to
// ask all the time: it polls, because a callback of the driver's
// (cudaLaunchHostFunc) would hold up the stream.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       std::unique_ptr<Watcher> watcher,
//       Watcher::Start(/*ordinal=*/0, [] { WakeTheStrand(); }));
//   watcher->Watch({mark});          // wakes once, when `mark` is done
//   watcher->Watch({mark}, absl::Milliseconds(10));   // or when that is over
//
// It completes nothing: whoever is woken asks for itself (CudaDevice::
// Progress()) and calls Watch() again. It sleeps on a condition variable while
// nothing is watched, and polls from every 10 us to every 200 us, longer the
// longer nothing happens: a step of a small network takes 100 us.
//
// Threads: any; the wakeup is called in the watcher's, without a lock held.

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

  //   kResourceExhausted: the thread was refused.
  static absl::StatusOr<std::unique_ptr<Watcher>> Start(
      int ordinal, std::function<void()> wakeup);
  // Joins the thread.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Wakes when any of `marks` is done, or has failed, or after `at_most`.
  // Replaces what was watched before.
  void Watch(Marks marks, absl::Duration at_most = absl::InfiniteDuration())
      ABSL_LOCKS_EXCLUDED(mutex_);

  // How often it has looked; a watcher that sleeps does not.
  std::int64_t looks() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit Watcher(std::function<void()> wakeup) : wakeup_(std::move(wakeup)) {}

  void Run(int ordinal) ABSL_LOCKS_EXCLUDED(mutex_);
  // What is to be watched, and until when.
  struct Task {
    Marks marks;
    absl::Time until = absl::InfiniteFuture();

    bool none() const {
      return marks.empty() && until == absl::InfiniteFuture();
    }
  };
  // Until one is done, or the time is over (true), or others are to be watched
  // (false).
  bool Poll(const Task& task, std::uint64_t round) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::function<void()> wakeup_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  Task task_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t round_ ABSL_GUARDED_BY(mutex_) = 0;  // of Watch()
  std::int64_t looks_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe::nn::cuda

#endif  // NN_KERNELS_CUDA_DEVICE_WATCHER_H_
