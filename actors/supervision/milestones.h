// The steps after which a job evaluates or saves. No rank may go beyond such a
// step before that has happened.
//
//   const Milestones milestones(spec, span);
//   milestones.After(0);              // 100: the next evaluation, say
//   milestones.EvaluationAt(100);     // true
//   milestones.CheckpointAt(100);     // false
//
// The end of the job is a milestone too. The supervisor decides what else is
// due there, since a stop may make any step the last one.
//
// Threads: any number; a Milestones is constant.

#ifndef ACTORS_SUPERVISION_MILESTONES_H_
#define ACTORS_SUPERVISION_MILESTONES_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "actors/setup/run_span.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

class Milestones {
 public:
  Milestones(std::shared_ptr<const JobSpec> spec,
             std::shared_ptr<const RunSpan> span)
      : spec_(std::move(spec)), span_(std::move(span)) {}

  // Returns the first milestone above `step`, or `step` if it is the job's last
  // step or a later one.
  std::int64_t After(std::int64_t step) const {
    std::int64_t next = std::max(step, span_->steps);
    if (spec_->test != nullptr) {
      next = NextMultiple(step, spec_->eval_every, next);
      if (spec_->eval_each_epoch) {
        next = std::min(next, span_->EpochEndAfter(step));
      }
    }
    if (spec_->checkpoint.dir.empty()) return next;
    return NextMultiple(step, spec_->checkpoint.every, next);
  }

  // Whether the run's plan has an evaluation after `step` steps.
  bool EvaluationAt(std::int64_t step) const {
    if (spec_->test == nullptr || step == span_->first_step) return false;
    return IsMultiple(step, spec_->eval_every) ||
           (spec_->eval_each_epoch && span_->EpochEndAfter(step - 1) == step);
  }
  bool CheckpointAt(std::int64_t step) const {
    return !spec_->checkpoint.dir.empty() &&
           IsMultiple(step, spec_->checkpoint.every);
  }

 private:
  static bool IsMultiple(std::int64_t step, std::int64_t every) {
    return every > 0 && step % every == 0;
  }
  // Returns the next multiple of `every` above `step`, but at most `limit`;
  // `limit` if `every` is 0.
  static std::int64_t NextMultiple(std::int64_t step, std::int64_t every,
                                   std::int64_t limit) {
    return every <= 0 ? limit : std::min(limit, (step / every + 1) * every);
  }

  const std::shared_ptr<const JobSpec> spec_;
  const std::shared_ptr<const RunSpan> span_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_MILESTONES_H_
