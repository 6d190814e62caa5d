#include "nn/kernels/cuda/device/watcher.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace troupe::nn::cuda {
namespace {

constexpr absl::Duration kPauseMin = absl::Microseconds(10);
constexpr absl::Duration kPauseMax = absl::Microseconds(200);

bool AnyDone(const Watcher::Marks& marks) {
  return std::any_of(marks.begin(), marks.end(), [](const auto& mark) {
    return cudaEventQuery(mark->event()) != cudaErrorNotReady;
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Watcher>> Watcher::Start(
    int ordinal, std::function<void()> wakeup) {
  std::unique_ptr<Watcher> watcher(new Watcher(std::move(wakeup)));
  try {
    watcher->thread_ =
        std::thread([ordinal, self = watcher.get()] { self->Run(ordinal); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the thread that watches cuda:", ordinal,
                     " was refused: ", error.what(),
                     "; raise the limits on threads (ulimit -u, or the pids "
                     "limit of the container)"));
  }
  return watcher;
}

Watcher::~Watcher() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    changed_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void Watcher::Watch(Marks marks, absl::Duration at_most) {
  Task task = {std::move(marks), absl::InfiniteFuture()};
  if (at_most != absl::InfiniteDuration()) task.until = absl::Now() + at_most;
  Task dropped;  // destroyed after the lock: its events return to a pool
  absl::MutexLock lock(&mutex_);
  dropped = std::exchange(task_, std::move(task));
  ++round_;
  changed_.Signal();
}

std::int64_t Watcher::looks() const {
  absl::MutexLock lock(&mutex_);
  return looks_;
}

void Watcher::Run(int ordinal) {
  cudaSetDevice(ordinal);
  while (true) {
    Task task;
    std::uint64_t round;
    {
      absl::MutexLock lock(&mutex_);
      while (task_.none() && !ending_) changed_.Wait(&mutex_);
      if (ending_) return;
      task = task_;
      round = round_;
    }
    if (!Poll(task, round)) continue;
    {
      absl::MutexLock lock(&mutex_);
      if (round == round_) task_ = Task();
    }
    wakeup_();
  }
}

bool Watcher::Poll(const Task& task, std::uint64_t round) {
  absl::Duration pause = kPauseMin;
  while (true) {
    if (AnyDone(task.marks)) return true;
    if (task.until != absl::InfiniteFuture() && absl::Now() >= task.until) {
      return true;
    }
    absl::MutexLock lock(&mutex_);
    ++looks_;
    if (round == round_ && !ending_) changed_.WaitWithTimeout(&mutex_, pause);
    if (round != round_ || ending_) return false;
    pause = std::min(2 * pause, kPauseMax);
  }
}

}  // namespace troupe::nn::cuda
