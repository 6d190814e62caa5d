#include "actors/supervision/due_work.h"

namespace troupe::actors {

bool DueWork::EvaluationAt(std::int64_t step, bool halted) const {
  if (spec_->test == nullptr || evaluated_at_ == step) return false;
  if (step >= span_->steps) return true;
  return !AtEnd(step, halted) && IsPlannedEvaluation(step);
}

bool DueWork::CheckpointAt(std::int64_t step, bool halted) const {
  if (spec_->checkpoint.dir.empty()) return false;
  const bool is_best = spec_->checkpoint.keep_best && evaluated_at_ == step &&
                       track_.best_step() == step;
  return is_best || AtEnd(step, halted) || milestones_.CheckpointAt(step);
}

void DueWork::SetEnd(std::int64_t step, JobResult& result) const {
  result.steps = step;
  if (step >= span_->steps) return;
  if (track_.HasConverged()) result.converged = track_.ToString();
  result.stopped = !track_.HasConverged();
}

void DueWork::Add(const EvaluationReport& report) {
  track_.Add(report, /*counts=*/IsPlannedEvaluation(report.step));
  evaluated_at_ = report.step;
}

}  // namespace troupe::actors
