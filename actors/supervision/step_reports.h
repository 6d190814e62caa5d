// Makes the observer's reports of steps, from rank 0's Progress, since losses
// are already summed over all ranks.
//
//   TROUPE_ASSIGN_OR_RETURN(auto optimizer, MakeOptimizer(*spec));
//   StepReports reports(span, spec->loss_reduction, std::move(optimizer));
//   reports.Note(progress);                      // of any rank
//   if (progress.rank == 0) {
//     std::vector<StepReport> steps = reports.Make(progress, seconds);
//   }
//   reports.Restart(seconds);      // excludes a time without steps
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
#include "actors/setup/run_span.h"
#include "actors/spec/job_spec.h"
#include "nn/optim/optimizer.h"

namespace troupe::actors {

class StepReports {
 public:
  // `span` gives the number of samples of each step, `optimizer` its learning
  // rate.
  StepReports(std::shared_ptr<const RunSpan> span,
              nn::ops::LossReduction reduction,
              std::unique_ptr<nn::Optimizer> optimizer)
      : span_(std::move(span)),
        reduction_(reduction),
        optimizer_(std::move(optimizer)) {}

  // Updates the peak memory from the Progress of any rank.
  void Note(const Progress& progress) {
    peak_bytes_ = std::max(peak_bytes_, progress.peak_bytes);
  }
  // Excludes the time until now from the next step's duration. `seconds`: time
  // since the job started, as in Make().
  void Restart(double seconds) { seconds_ = seconds; }
  // Returns a report for each step of rank 0's `progress`.
  std::vector<StepReport> Make(const Progress& progress, double seconds);

 private:
  const std::shared_ptr<const RunSpan> span_;
  const nn::ops::LossReduction reduction_;
  const std::unique_ptr<nn::Optimizer> optimizer_;
  std::uint64_t peak_bytes_ = 0;  // maximum over all ranks
  double seconds_ = 0;            // time of the last Make() or Restart()
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_STEP_REPORTS_H_
