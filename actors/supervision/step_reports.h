// Makes reports from what ranks say: of a step from rank 0's word, since losses
// are summed over all ranks, and of an evaluation from that of all.
//
//   TROUPE_ASSIGN_OR_RETURN(auto optimizer, MakeOptimizer(*spec));
//   StepReports reports(*plan, spec->loss_reduction, std::move(optimizer));
//   reports.Note(progress);                      // of any rank
//   if (progress.rank == 0) {
//     std::vector<StepReport> steps = reports.Make(progress, seconds);
//   }
//   reports.Restart(seconds);      // ranks stood still: that counts to no step
//
// Threads: the supervisor's strand.

#ifndef ACTORS_SUPERVISION_STEP_REPORTS_H_
#define ACTORS_SUPERVISION_STEP_REPORTS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "actors/protocol/messages.h"
#include "actors/setup/job_report.h"
#include "actors/spec/job_spec.h"
#include "nn/optim/optimizer.h"
#include "pipeline/plan.h"

namespace troupe::actors {

class StepReports {
 public:
  // `optimizer` knows the learning rates of steps.
  StepReports(const pipeline::Plan& plan, nn::ops::LossReduction reduction,
              std::unique_ptr<nn::Optimizer> optimizer)
      : samples_(plan.global_batch_size),
        reduction_(reduction),
        optimizer_(std::move(optimizer)) {}

  void Note(const Progress& progress) {
    peak_bytes_ = std::max(peak_bytes_, progress.peak_bytes);
  }
  // `seconds`: since the job started.
  void Restart(double seconds) { seconds_ = seconds; }
  std::vector<StepReport> Make(const Progress& progress, double seconds);

 private:
  const std::int64_t samples_;  // of a step
  const nn::ops::LossReduction reduction_;
  const std::unique_ptr<nn::Optimizer> optimizer_;
  std::uint64_t peak_bytes_ = 0;  // of any rank
  double seconds_ = 0;            // when the last steps were told of
};

// The evaluation that all ranks have made, each a part: sums in rank order,
// whoever was first.
EvaluationReport SumOf(std::int64_t step, nn::ops::LossReduction reduction,
                       std::vector<Evaluated> parts);

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_STEP_REPORTS_H_
