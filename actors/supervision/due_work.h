// Decides which work is due when all ranks have reached a boundary: an
// evaluation, a checkpoint, or the end of the job. Plain data, without actors.
//
//   DueWork due(spec, span, resume.evaluations);
//   const std::int64_t step = due.NextBoundary(0);     // 100, say
//   if (due.EvaluationAt(step, /*halted=*/false)) due.Add(Evaluate(step));
//   if (due.CheckpointAt(step, /*halted=*/false)) Save(due.StateAt(step));
//   if (due.AtEnd(step, /*halted=*/false)) due.SetEnd(step, result);
//
// `step`: number of steps that all ranks have committed. `halted`: whether a
// stop was requested, which makes any step the last one.
//
// The caller adds two decisions: a checkpoint is due by time (saving.h), and
// none is made of a step that is saved already.
//
// Threads: the supervisor's strand.

#ifndef ACTORS_SUPERVISION_DUE_WORK_H_
#define ACTORS_SUPERVISION_DUE_WORK_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "actors/checkpoint/trainer_state.h"
#include "actors/setup/job_report.h"
#include "actors/setup/run_span.h"
#include "actors/spec/job_spec.h"
#include "actors/supervision/evaluation_track.h"
#include "actors/supervision/milestones.h"

namespace troupe::actors {

class DueWork {
 public:
  // `saved`: evaluations of the checkpoint that the run resumes from.
  DueWork(const std::shared_ptr<const JobSpec>& spec,
          const std::shared_ptr<const RunSpan>& span,
          const std::optional<EvaluationState>& saved)
      : spec_(spec),
        span_(span),
        milestones_(spec, span),
        track_(spec, saved) {}

  // Returns the first boundary above `step`; `step` itself at the job's end.
  std::int64_t NextBoundary(std::int64_t step) const {
    return milestones_.After(step);
  }
  // Whether the job has ended: by a stop, early, or since all steps are done.
  bool AtEnd(std::int64_t step, bool halted) const {
    return halted || track_.HasConverged() || step >= span_->steps;
  }
  // Whether the test set is to be evaluated. A stop postpones an evaluation,
  // unless all steps are done.
  bool EvaluationAt(std::int64_t step, bool halted) const;
  // Whether a checkpoint is to be written.
  bool CheckpointAt(std::int64_t step, bool halted) const;

  // Sets the number of steps in the result of a job that ends after `step`
  // steps, and if these are not all, why it ends.
  void SetEnd(std::int64_t step, JobResult& result) const;

  // Adds an evaluation, which is then no longer due.
  void Add(const EvaluationReport& report);
  const EvaluationTrack& track() const { return track_; }
  // Returns the state of evaluations for a checkpoint of `step`.
  std::optional<EvaluationState> StateAt(std::int64_t step) const {
    return track_.StateWith(
        /*due=*/evaluated_at_ != step && IsPlannedEvaluation(step));
  }

 private:
  // Whether the run's plan has an evaluation at `step`.
  bool IsPlannedEvaluation(std::int64_t step) const {
    return milestones_.EvaluationAt(step) ||
           (step == span_->first_step && track_.due());
  }

  const std::shared_ptr<const JobSpec> spec_;
  const std::shared_ptr<const RunSpan> span_;
  const Milestones milestones_;
  EvaluationTrack track_;
  std::int64_t evaluated_at_ = -1;  // step of the last evaluation
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_DUE_WORK_H_
