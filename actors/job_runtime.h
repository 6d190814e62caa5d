// What the actors of one job share: the spec, the plan, the groups, and where
// the outcome goes. Made before the first actor, constant afterwards except
// for the outcome.

#ifndef ACTORS_JOB_RUNTIME_H_
#define ACTORS_JOB_RUNTIME_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "actors/checkpoint/checkpoint.h"
#include "actors/job.h"
#include "actors/step_types.h"
#include "comm/communicator.h"
#include "data/sampler.h"
#include "nn/arena/parameter_arena.h"

namespace troupe::actors {

// Written into checkpoints.
inline constexpr char kTroupeVersion[] = "0.1";

// Where a job's result is put, once, and waited for.
class JobOutcome {
 public:
  // The first call counts.
  void Set(absl::StatusOr<JobResult> result) {
    absl::MutexLock lock(&mutex_);
    if (done_.HasBeenNotified()) return;
    result_ = std::move(result);
    done_.Notify();
  }
  bool HasBeenSet() const { return done_.HasBeenNotified(); }
  absl::StatusOr<JobResult> Wait() {
    done_.WaitForNotification();
    absl::MutexLock lock(&mutex_);
    return result_;
  }

 private:
  absl::Mutex mutex_;
  absl::Notification done_;
  absl::StatusOr<JobResult> result_ ABSL_GUARDED_BY(mutex_) =
      absl::UnknownError("the job has not ended");
};

struct JobRuntime {
  JobSpec spec;
  pipeline::Plan plan;
  // Each rank's own table; the plan's, unless a test bends it.
  std::vector<pipeline::StepTable> tables;
  std::int32_t generation = 1;
  std::int64_t first_step = 0;
  std::int64_t steps = 0;                // in all: the spec's, or its epochs'
  std::optional<data::Sampler> sampler;  // its batch 0 is that of first_step
  // What a resumed job starts from; null: fresh.
  std::shared_ptr<const Checkpoint> checkpoint;
  base::FileSystem* files = nullptr;
  std::unique_ptr<base::FileSystem> own_files;  // where the spec names none
  // Steps granted ahead of the slowest rank, at most; tests make it small.
  std::int64_t window_max = 1024;

  // By rank: the whole job, and the ranks with the same stage.
  std::vector<std::unique_ptr<comm::Communicator>> world;
  std::vector<std::unique_ptr<comm::Communicator>> dp;

  // Where the sampler stands after `step` committed steps.
  data::SamplerState SamplerStateAt(std::int64_t step) const {
    return sampler->StateAt(step - first_step);
  }
  // The first end of an epoch after `step` committed steps.
  std::int64_t EpochEndAfter(std::int64_t step) const {
    const std::int64_t epoch = sampler->BatchAt(step - first_step).epoch;
    return first_step + sampler->BatchesUntil(epoch + 1);
  }

  JobObserver* observer = nullptr;  // may be null
  // Where the simulator looks in; null in production. Called on the compute
  // strand: after a training step, and for the number of times a yielding
  // strand looks into its mailbox before it goes on.
  std::function<void(int rank, std::int64_t step,
                     const nn::ParameterArena& arena)>
      after_step;
  std::function<int()> mailbox_rounds;
  JobOutcome outcome;

  // Ends all collectives of the job, on every rank.
  void AbortGroups(const absl::Status& status) {
    for (auto& communicator : world) communicator->Abort(status);
    for (auto& communicator : dp) communicator->Abort(status);
  }
};
using JobRuntimePtr = std::shared_ptr<JobRuntime>;

// Makes plan, groups, tables and the sampler; reads the checkpoint that is
// resumed from. No actor exists yet.
absl::StatusOr<JobRuntimePtr> MakeJobRuntime(const JobSpec& spec,
                                             JobObserver* observer);

}  // namespace troupe::actors

#endif  // ACTORS_JOB_RUNTIME_H_
