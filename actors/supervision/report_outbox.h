// The reports of a job on their way to its reporter: makes those of steps,
// queues all, and releases one batch at a time, which is the reporter's credit.
// Plain data, without actors.
//
//   TROUPE_ASSIGN_OR_RETURN(auto optimizer, MakeOptimizer(*spec));
//   ReportOutbox outbox(span, spec->loss_reduction, std::move(optimizer),
//                       /*observed=*/true);
//   outbox.Note(progress);                        // of any rank
//   if (progress.rank == 0) outbox.AddSteps(progress, seconds);
//   outbox.Add(evaluation);
//   if (auto batch = outbox.Next()) Send(*std::move(batch));
//   outbox.Delivered();                           // Next() may follow
//
// No report is dropped, except if nothing observes the job: the supervisor
// grants no steps while full().
//
// Threads: one at a time; not synchronised.

#ifndef ACTORS_SUPERVISION_REPORT_OUTBOX_H_
#define ACTORS_SUPERVISION_REPORT_OUTBOX_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "actors/protocol/messages.h"
#include "actors/protocol/report_queue.h"
#include "actors/supervision/step_reports.h"

namespace troupe::actors {

class ReportOutbox {
 public:
  // `observed`: whether the job has an observer. The other parameters are those
  // of StepReports.
  ReportOutbox(std::shared_ptr<const RunSpan> span,
               nn::ops::LossReduction reduction,
               std::unique_ptr<nn::Optimizer> optimizer, bool observed)
      : steps_(std::move(span), reduction, std::move(optimizer)),
        observed_(observed) {}

  // Does the same as the StepReports method of its name.
  void Note(const Progress& progress) { steps_.Note(progress); }
  void Restart(double seconds) { steps_.Restart(seconds); }

  // Adds a report for each step of rank 0's `progress`, which has one or more.
  // Returns the loss of the last.
  double AddSteps(const Progress& progress, double seconds) {
    std::vector<StepReport> reports = steps_.Make(progress, seconds);
    const double loss = reports.back().loss;
    queue_.AddSteps(std::move(reports));
    return loss;
  }
  void Add(Report report) { queue_.Add(std::move(report)); }

  // Whether the reporter is so far behind that no step should be granted.
  bool full() const { return queue_.full(); }
  // Returns all queued reports; none if there are none, or the batch before has
  // not been delivered.
  std::optional<std::vector<Report>> Next() {
    if (!observed_) queue_.Take();
    if (delivering_ || queue_.empty()) return std::nullopt;
    delivering_ = true;
    return queue_.Take();
  }
  // Notes that the last batch has been delivered.
  void Delivered() { delivering_ = false; }
  // Returns all queued reports, for the end of the job.
  std::vector<Report> TakeRest() { return queue_.Take(); }

 private:
  StepReports steps_;
  ReportQueue queue_;
  const bool observed_;
  bool delivering_ = false;  // whether the reporter has a batch to deliver
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_REPORT_OUTBOX_H_
