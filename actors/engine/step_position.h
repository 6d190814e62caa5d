// The position of a rank's compute strand in its step, which other threads may
// read: the strand itself may be in a kernel or wait for a peer, and not
// answer.
//
//   StepPosition position;
//   position.BeginStep(StepKind::kTrain, /*step=*/7);
//   position.Await({/*forward=*/true, /*micro_batch=*/3, /*stage=*/1});
//   position.Get().receive->micro_batch;       // 3, from any thread
//   position.GoOn();
//   position.EndStep();
//
// Threads: the compute strand writes, any thread reads. Cost: two uncontended
// locks a step, and two more for each wait for a tensor.

#ifndef ACTORS_ENGINE_STEP_POSITION_H_
#define ACTORS_ENGINE_STEP_POSITION_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "actors/chunks/step/step_types.h"

namespace troupe::actors {

class StepPosition {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // A tensor of another stage that the strand waits for.
  struct Receive {
    bool forward = true;  // true: an activation; false: a gradient
    int micro_batch = 0;
    int stage = 0;  // number of the stage that receives it
    TimePoint since = {};
  };
  struct Place {
    bool running = false;  // whether a step has begun and not ended
    StepKind kind = StepKind::kTrain;
    std::int64_t step = -1;
    std::optional<Receive> receive;
  };

  void BeginStep(StepKind kind, std::int64_t step) {
    absl::MutexLock lock(&mutex_);
    place_ = {/*running=*/true, kind, step, std::nullopt};
  }
  void EndStep() {
    absl::MutexLock lock(&mutex_);
    place_.running = false;
  }
  // Records that the strand waits for a tensor. Repeated for the same tensor,
  // it keeps the time of the first call.
  void Await(Receive what) {
    absl::MutexLock lock(&mutex_);
    std::optional<Receive>& now = place_.receive;
    if (now && now->forward == what.forward && now->stage == what.stage &&
        now->micro_batch == what.micro_batch) {
      return;
    }
    what.since = std::chrono::steady_clock::now();
    now = what;
    waits_ = true;
  }
  // Records that the strand no longer waits for a tensor.
  void GoOn() {
    if (!waits_) return;
    waits_ = false;
    absl::MutexLock lock(&mutex_);
    place_.receive.reset();
  }

  Place Get() const {
    absl::MutexLock lock(&mutex_);
    return place_;
  }

 private:
  bool waits_ = false;  // used by the strand alone
  mutable absl::Mutex mutex_;
  Place place_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_POSITION_H_
