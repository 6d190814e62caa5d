// What StepRunner does with buckets that several stages share.

#include "actors/engine/step_runner.h"
#include "actors/engine/tied_sums.h"
#include "base/check.h"
#include "nn/kernels/device_queues.h"

namespace troupe::actors {

absl::Status StepRunner::ReduceTied(int id) {
  const pipeline::Action& action = ActionOf(id);
  trace_.Begin(action);
  TiedSums::Sum* const sum = ties_.Begin(action, id);
  if (sum == nullptr) return absl::OkStatus();
  nn::Tensor total = TiedGrads(sum->copies[0]);
  for (std::size_t i = 1; i < sum->copies.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(
        kernels_->Add(total, TiedGrads(sum->copies[i]), total));
  }
  if (!sum->has_peers) {
    FinishTied(*sum, nn::Record(*kernels_, nn::Queue::kCompute), *cursor_,
               trace_);
    return tied_status_;
  }
  const comm::Event ready = sum->copies.size() > 1
                                ? nn::Record(*kernels_, nn::Queue::kCompute)
                                : events_->Ready(action.chunk, action.index);
  comm::Collective collective =
      comm::AllReduce(comm::ReduceOp::kSum, std::move(total));
  // The first stage's gradient ends the backward, and all updates wait for it.
  if (tail_) collective.priority = id;
  const absl::StatusOr<bool> done =
      reducer_.Start(id, pipeline::TiedGroup(sum->tie), collective, ready);
  if (!done.ok()) return CollectiveFailed(step_, id, done.status());
  TROUPE_CHECK(!*done, "a tie with peers is of several ranks, none inline");
  return absl::OkStatus();
}

void StepRunner::FinishTied(TiedSums::Sum& sum, const comm::Event& done,
                            pipeline::TableCursor& cursor, StepTrace& trace) {
  tied_status_.Update(PassOnTied(sum, done));
  for (const int id : ties_.End(sum)) {
    cursor.Finish(id);
    trace.End(cursor.table().actions[id]);
  }
}

// In the queue of updates, so that the compute queue waits for no peers.
absl::Status StepRunner::PassOnTied(const TiedSums::Sum& sum,
                                    const comm::Event& done) {
  const nn::Queue queue = events_->update_queue();
  nn::Wait(*kernels_, queue, done);
  const nn::QueueScope scope(*kernels_, queue);
  for (std::size_t i = 0; i < sum.copies.size(); ++i) {
    const TiedSums::Copy& copy = sum.copies[i];
    if (i > 0) {
      nn::Tensor grads = TiedGrads(copy);
      TROUPE_RETURN_IF_ERROR(kernels_->Copy(TiedGrads(sum.copies[0]), grads));
    }
    TROUPE_RETURN_IF_ERROR(chunks_[copy.chunk]->Pack(copy.bucket));
  }
  const comm::Event there = nn::Record(*kernels_, queue);
  for (const TiedSums::Copy& copy : sum.copies) {
    events_->NoteSummed(copy.chunk, copy.bucket, there);
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
