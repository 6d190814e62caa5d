// Reports of a job to its observer, while it runs and at its end.
//
//   class Printer : public JobObserver {
//     void OnSteps(absl::Span<const StepReport> steps) override {
//       std::printf("step %lld: loss %g\n",
//                   static_cast<long long>(steps.back().step),
//                   steps.back().loss);
//     }
//   };
//   Printer printer;
//   absl::StatusOr<JobResult> result = RunJob(spec, &printer);  // actors/job.h

#ifndef ACTORS_SETUP_JOB_REPORT_H_
#define ACTORS_SETUP_JOB_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "actors/planning/expected_memory.h"
#include "data/sampler.h"
#include "pipeline/plan.h"

namespace troupe::actors {

struct JobInfo {
  pipeline::Plan plan;
  std::int64_t first_step = 0;  // above 0 when resumed
  std::int64_t steps = 0;
  // The run's sampler; its batch 0 is the one of first_step. None: the job
  // only evaluates.
  std::optional<data::Sampler> sampler;
  std::string resumed_from;  // path of the checkpoint
  // Number of steps of the run before first_step that updated nothing.
  std::int64_t skipped_steps = 0;
  // Differences of the plan from that of the run that wrote the checkpoint: a
  // line for each field, with its value then and now, as in "mesh[dp].size: 2,
  // 4" (pipeline/plan_diff.h). The one line of an error if that plan cannot be
  // read; none if the checkpoint has no plan.
  std::vector<std::string> plan_changes;
  // Settings that differ from the checkpoint's, in the same form:
  // "optimizer.lr: 0.1, 0.02" (actors/setup/settings.h).
  std::vector<std::string> setting_changes;
  // Tensors that only the job has, and tensors that only the checkpoint has, if
  // CheckpointOptions allows them. The former begin with initial values, the
  // latter are left out.
  std::vector<std::string> missing, unexpected;
  // Transports by which this process exchanges tensors with the job's other
  // ones, as in "shm (1 link), tcp (2 links)"; empty: there are none.
  std::string transports;
  // Estimate of the memory of a rank's tensors; a total of 0: it is unknown.
  ExpectedMemory memory;
};

// One committed step. Losses and accuracies are means over all counted targets
// of the global batch; JobSpec::loss_reduction may make the loss a sum.
struct StepReport {
  std::int64_t step = 0;  // number of committed steps: 1 for the first
  double loss = 0;
  double accuracy = 0;  // 0 for regression
  std::int64_t samples = 0;
  bool skipped = false;   // its gradients were not finite; nothing was updated
  double loss_scale = 1;  // factor of its gradients before the update
  double seconds = 0;     // time from the job's start to the report
  // Duration of the step, as a mean over all steps that were reported at once.
  double step_seconds = 0;
  double lr = 0;  // learning rate of the step
  // Norm of all mean gradients of the step, before clipping; 0 unless the
  // optimizer clips by it.
  double grad_norm = 0;
  // Peak so far of the bytes of one rank's tensors, over all ranks.
  std::int64_t peak_bytes = 0;
};

struct EvaluationReport {
  std::int64_t step = 0;
  double loss = 0;
  // Weighted by the class weights, if there are any. NaN: no target counts, or
  // all that do have the weight 0.
  double accuracy = 0;
  std::int64_t count = 0;  // number of targets that count
};

struct JobResult {
  std::int64_t steps = 0;  // number of committed steps, also of earlier runs
  double loss = 0;         // the last step's
  bool stopped = false;    // by RequestStop, before all steps were done
  // Reason of an early stop (JobSpec::early_stop_patience), as a sentence;
  // empty: there was none.
  std::string converged;
  EvaluationReport evaluation;  // the last one; count 0: none
  EvaluationReport best;   // this run's best, by best_metric; count 0: none
  std::string checkpoint;  // path of the last one written; may be empty
  double seconds = 0;
};

class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnStart(const JobInfo&) {}
  // Called with consecutive steps, in order, each exactly once.
  virtual void OnSteps(absl::Span<const StepReport>) {}
  virtual void OnEvaluation(const EvaluationReport&) {}
  virtual void OnCheckpoint(std::int64_t /*step*/,
                            const std::string& /*path*/) {}
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_JOB_REPORT_H_
