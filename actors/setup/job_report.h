// What a job tells while it runs, and at its end.
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
  // Where the run begins in its data: batch 0 is that of the first step.
  std::optional<data::Sampler> sampler;
  std::string resumed_from;  // path of the checkpoint
  // How the plan differs from that of the run that wrote the checkpoint: a line
  // for each field, with its value then and now, as in "mesh[dp].size: 2, 4"
  // (pipeline/plan_diff.h). One line says why where that plan cannot be read;
  // none where the checkpoint has no plan.
  std::vector<std::string> plan_changes;
  // Tensors that only the job has, and only the checkpoint: where allowed
  // (CheckpointOptions), the former begin with initial values, the latter are
  // left out.
  std::vector<std::string> missing, unexpected;
  // How this process exchanges tensors with the job's others, as in "shm (1
  // link), tcp (2 links)"; empty: there are none.
  std::string transports;
  // What its tensors will hold, by estimate; a total of 0: nobody knows.
  ExpectedMemory memory;
};

// One committed step. Losses and accuracies are means over all counted targets
// of the global batch; a loss is the sum where JobSpec::loss_reduction says so.
struct StepReport {
  std::int64_t step = 0;  // 1 after the first
  double loss = 0;
  double accuracy = 0;  // 0 for regression
  std::int64_t samples = 0;
  bool skipped = false;   // its gradients were not finite; nothing was updated
  double loss_scale = 1;  // what they were multiplied by
  double seconds = 0;     // since the job started, when it was reported
  double step_seconds = 0;  // that it took, a mean over those reported with it
  double lr = 0;            // learning rate of the step
  // Norm of all mean gradients of the step, before clipping; 0 where the
  // optimizer does not clip by it.
  double grad_norm = 0;
  // Most bytes that the tensors of any one rank have held at once so far.
  std::int64_t peak_bytes = 0;
};

struct EvaluationReport {
  std::int64_t step = 0;
  double loss = 0;
  double accuracy = 0;
  std::int64_t count = 0;  // targets
};

struct JobResult {
  std::int64_t steps = 0;  // committed in all
  double loss = 0;         // of the last step
  bool stopped = false;    // by RequestStop, before all steps were done
  // Why the job stopped early, in a sentence; empty: it did not.
  std::string converged;
  EvaluationReport evaluation;  // the last one; count 0: none
  EvaluationReport best;        // of this run's, by best_metric; count 0: none
  std::string checkpoint;       // path of the last one written; may be empty
  double seconds = 0;
};

class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void OnStart(const JobInfo&) {}
  // Consecutive steps, in order, each exactly once.
  virtual void OnSteps(absl::Span<const StepReport>) {}
  virtual void OnEvaluation(const EvaluationReport&) {}
  virtual void OnCheckpoint(std::int64_t /*step*/,
                            const std::string& /*path*/) {}
};

}  // namespace troupe::actors

#endif  // ACTORS_SETUP_JOB_REPORT_H_
