// What StepRunner does with the tail of a step.

#include "actors/engine/step_tail.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "actors/engine/step_runner.h"
#include "base/check.h"

namespace troupe::actors {

using pipeline::ActionKind;
using pipeline::SignalKind;

// Where reductions are inline nothing is under way when a step ends. An update
// that needs all buckets comes behind the last of them, as the forward does. A
// device that works later runs updates in its own queue, before the forward.
bool StepRunner::OverlapsSteps() const {
  const pipeline::Plan& plan = *setup_.plan;
  const auto& actions = train_.cursor.table().actions;
  return plan.cross_step && !plan.update_needs_all_buckets &&
         !plan.RankPlanOf(setup_.rank).reduce_inline &&
         kernels_->queues() == nullptr &&
         std::none_of(actions.begin(), actions.end(), [](const auto& action) {
           return action.kind == ActionKind::kReduceUpdateBucket;
         });
}

absl::Status StepRunner::EndStep(StepLoss& loss, StepKind kind,
                                 std::int64_t step) {
  // A tail may end in the middle of the next step.
  if (kind == kind_ && step == step_) position_.EndStep();
  TROUPE_RETURN_IF_ERROR(loss.EndStep());
  return host_->StepDone(kind, step);
}

absl::StatusOr<std::optional<LossBits>> StepRunner::TakeLoss() {
  for (std::size_t before = losses_.size() - 1; before > 0; --before) {
    StepLoss& earlier = losses_[(turn_ + before) % losses_.size()];
    TROUPE_ASSIGN_OR_RETURN(std::optional<LossBits> bits, earlier.Take());
    if (bits.has_value()) return bits;
  }
  return loss().Take();
}

absl::StatusOr<bool> StepRunner::AdvanceTail(int preferred) {
  if (!tail_ || !tail_->active()) return false;
  const int next = tail_->NextUpdate(preferred);
  if (next >= 0) {
    tail_->cursor().Start(next);
    TROUPE_RETURN_IF_ERROR(Update(train_.cursor.table().actions[next],
                                  tail_->loss(), tail_->trace()));
    tail_->cursor().Finish(next);
  }
  if (tail_->complete()) {
    tail_->End();
    TROUPE_RETURN_IF_ERROR(
        EndStep(tail_->loss(), StepKind::kTrain, tail_->step()));
  } else if (next < 0) {
    return false;
  }
  wait_->TakeNews(/*expected=*/false);
  return true;
}

absl::Status StepRunner::FinishTail() {
  while (tail_ && tail_->active()) {
    TROUPE_ASSIGN_OR_RETURN(const bool ran, AdvanceTail());
    if (!ran) wait_->AwaitNews();
  }
  return absl::OkStatus();
}

absl::Status StepRunner::AwaitUpdate(int chunk, int bucket) {
  events_->AwaitUpdate(chunk, bucket);
  if (!tail_ || !tail_->active()) return absl::OkStatus();
  const int update =
      train_.index.Find(ActionKind::kUpdateBucket, bucket, chunk);
  while (tail_->active() &&
         !tail_->cursor().Given({SignalKind::kDone, update})) {
    TROUPE_ASSIGN_OR_RETURN(const bool ran, AdvanceTail(update));
    if (!ran) wait_->AwaitNews();
  }
  return absl::OkStatus();
}

std::string StepRunner::Unfinished() const {
  if (!tail_ || !tail_->active()) {
    // The cursor of a step goes with its tail.
    const bool ended =
        tail_ && kind_ == StepKind::kTrain && tail_->step() == step_;
    return ended ? "" : cursor_->Unfinished();
  }
  std::string left = tail_->cursor().Unfinished();
  if (!tail_->IsOf(step_)) {
    absl::StrAppend(&left, " of step ", tail_->step() + 1, ", ",
                    cursor_->Unfinished());
  }
  return left;
}

}  // namespace troupe::actors
