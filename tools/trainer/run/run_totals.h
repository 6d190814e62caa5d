// Adds up the reports of a job: steps, samples and their rate, memory, loss
// scale.
//
//   RunTotals totals;
//   totals.Start(info);                       // actors::JobInfo
//   totals.Add(report);                       // actors::StepReport
//   Progress progress = totals.ProgressAt(report);
//
// Threads: one at a time.

#ifndef TOOLS_TRAINER_RUN_RUN_TOTALS_H_
#define TOOLS_TRAINER_RUN_RUN_TOTALS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "actors/job.h"
#include "data/sampler.h"
#include "tools/trainer/terminal/progress.h"

namespace troupe::tools {

class RunTotals {
 public:
  void Start(const actors::JobInfo& info);
  // Adds a step, in the order of the steps.
  void Add(const actors::StepReport& report);

  // Returns the progress after the step that was added last, without accuracy.
  Progress ProgressAt(const actors::StepReport& report) const;
  // Returns the epoch, counted from 1, of a step (1 after the first). Valid
  // once the job has started.
  std::int64_t EpochOf(std::int64_t step) const;

  // Number of steps before this run, and after it.
  std::int64_t first_step() const { return first_step_; }
  std::int64_t steps() const { return steps_; }
  const std::string& resumed_from() const { return resumed_from_; }
  // Number of samples that this run has trained on.
  std::int64_t samples() const { return samples_; }
  // Largest StepReport::peak_bytes so far.
  std::int64_t peak_bytes() const { return peak_bytes_; }
  // Number of steps that updated nothing, also before this run resumed.
  std::int64_t skipped_steps() const { return skipped_steps_; }
  // Loss scale of the last step; none if the scale is constant.
  std::optional<double> loss_scale() const { return loss_scale_; }

 private:
  RateMeter rate_;
  std::int64_t first_step_ = 0;
  std::optional<data::Sampler> sampler_;  // at first_step_, once started
  std::string resumed_from_;
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t skipped_steps_ = 0;
  std::optional<double> loss_scale_;
};

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_RUN_RUN_TOTALS_H_
