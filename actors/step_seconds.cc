#include "actors/step_seconds.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "actors/job.h"
#include "base/check.h"

namespace troupe::actors {
namespace {

// Steps that tell nothing of kernels that are made at the first use.
constexpr std::int64_t kFewSteps = 4, kManySteps = 1024;
constexpr double kLongEnough = 0.2;  // seconds

class StepTimer : public JobObserver {
 public:
  void OnSteps(absl::Span<const StepReport> steps) override {
    // Those that are reported together have the mean of their times.
    if (first_ < 0) {
      first_ = steps[0].step_seconds;
    } else {
      least_ = std::min(least_, steps[0].step_seconds);
    }
  }
  // The first report's where there is no other.
  double least() const {
    return least_ == std::numeric_limits<double>::infinity() ? first_ : least_;
  }

 private:
  double first_ = -1;
  double least_ = std::numeric_limits<double>::infinity();
};

JobSpec ShortJob(const JobSpec& spec) {
  JobSpec job = spec;
  job.cluster.reset();
  job.checkpoint = CheckpointOptions();
  job.init = InitOptions();
  job.test = nullptr;
  job.note = nullptr;
  job.trace = nullptr;
  job.epochs = 0;
  job.eval_every = 0;
  job.eval_each_epoch = false;
  job.early_stop_patience = 0;
  job.stop_on_nan = false;
  pipeline::PlanOptions& plan = job.plan;
  const std::int64_t samples = plan.micro_batch_size > 0
                                   ? plan.micro_batch_size
                                   : plan.global_batch_size / plan.mesh.dp();
  plan.global_batch_size = std::max<std::int64_t>(samples, 1);
  plan.micro_batch_size = 0;
  plan.mesh = pipeline::Mesh();
  plan.cuts.clear();
  plan.virtual_stages = 1;
  plan.placement = pipeline::Placement();
  plan.schedule = nullptr;
  return job;
}

}  // namespace

absl::StatusOr<double> MeasureStepSeconds(const JobSpec& spec) {
  JobSpec job = ShortJob(spec);
  for (job.steps = kFewSteps;; job.steps *= 4) {
    StepTimer timer;
    TROUPE_ASSIGN_OR_RETURN(const JobResult result, RunJob(job, &timer));
    if (result.seconds >= kLongEnough || job.steps >= kManySteps) {
      return timer.least();
    }
  }
}

}  // namespace troupe::actors
