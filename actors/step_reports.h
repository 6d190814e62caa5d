// Makes reports from what ranks say: of a step from rank 0's word, since losses
// are summed over all ranks, and of an evaluation from that of all.
//
//   StepReports reports(*spec, *plan);
//   reports.Note(progress);                      // of any rank
//   if (progress.rank == 0) {
//     std::vector<StepReport> steps = reports.Make(progress, seconds);
//   }
//   reports.Restart(seconds);      // ranks stood still: that counts to no step
//
// Threads: the supervisor's strand.

#ifndef ACTORS_STEP_REPORTS_H_
#define ACTORS_STEP_REPORTS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "actors/job.h"
#include "actors/job_spec.h"
#include "actors/messages.h"
#include "nn/optim/optimizer.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class StepReports {
 public:
  StepReports(const JobSpec& spec, const pipeline::Plan& plan)
      : samples_(plan.global_batch_size), optimizer_(spec.optimizer()) {}

  void Note(const Progress& progress) {
    peak_bytes_ = std::max(peak_bytes_, progress.peak_bytes);
  }
  // `seconds`: since the job started.
  void Restart(double seconds) { seconds_ = seconds; }
  std::vector<StepReport> Make(const Progress& progress, double seconds);

 private:
  const std::int64_t samples_;                      // of a step
  const std::unique_ptr<nn::Optimizer> optimizer_;  // for its learning rates
  std::uint64_t peak_bytes_ = 0;                    // of any rank
  double seconds_ = 0;  // when the last steps were told of
};

// The evaluation that all ranks have made, each a part: sums in rank order,
// whoever was first.
EvaluationReport SumOf(std::int64_t step, std::vector<Evaluated> parts);

}  // namespace troupe::actors

#endif  // ACTORS_STEP_REPORTS_H_
