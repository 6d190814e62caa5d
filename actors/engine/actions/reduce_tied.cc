#include "actors/engine/actions/reduce_tied.h"

#include <utility>

#include "actors/engine/dispatcher.h"
#include "base/check.h"
#include "comm/communicator.h"
#include "nn/kernels/device_queues.h"
#include "pipeline/group_id.h"

namespace troupe::actors {

absl::StatusOr<StepAction::Progress> ReduceTiedAction::Begin(
    int id, StepInFlight& step, Dispatcher& dispatcher) {
  const pipeline::Action& action = step.ActionAt(id);
  step.trace->Begin(action);
  TiedSums::Sum* const sum = sums_.Begin(action, id);
  if (sum == nullptr) return Progress::kPending;  // ends with the last copy
  nn::Kernels& kernels = parts_.kernels();
  nn::Tensor total = GradsOf(sum->copies[0]);
  for (std::size_t i = 1; i < sum->copies.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(kernels.Add(total, GradsOf(sum->copies[i]), total));
  }
  if (!sum->has_peers) {
    TROUPE_RETURN_IF_ERROR(
        End(id, step, dispatcher, nn::Record(kernels, nn::Queue::kCompute)));
    return Progress::kDone;
  }
  const base::Event ready =
      sum->copies.size() > 1 ? nn::Record(kernels, nn::Queue::kCompute)
                             : parts_.events.Ready(action.chunk, action.index);
  comm::Collective collective =
      comm::AllReduce(comm::ReduceOp::kSum, std::move(total));
  // The first stage's gradient is complete last, and all updates wait for it.
  if (parts_.overlaps_steps) collective.priority = id;
  const absl::StatusOr<bool> done = parts_.reducer.Start(
      id, pipeline::TiedGroup(sum->tie), collective, ready);
  if (!done.ok()) return CollectiveError(step, id, done.status());
  TROUPE_CHECK(!*done, "a tie with peers is of several ranks, none inline");
  return Progress::kPending;
}

absl::Status ReduceTiedAction::End(int id, StepInFlight& step,
                                   Dispatcher& dispatcher,
                                   const base::Event& done) {
  TiedSums::Sum& sum = sums_.Of(step.ActionAt(id));
  TROUPE_RETURN_IF_ERROR(PassOn(sum, done));
  for (const int copy : sums_.End(sum)) {
    if (copy != id) dispatcher.Finish(step, copy);
  }
  return absl::OkStatus();
}

// Enqueues in the queue of updates, so that the compute queue waits for no
// peers.
absl::Status ReduceTiedAction::PassOn(const TiedSums::Sum& sum,
                                      const base::Event& done) {
  nn::Kernels& kernels = parts_.kernels();
  const nn::Queue queue = parts_.events.update_queue();
  nn::Wait(kernels, queue, done);
  const nn::QueueScope scope(kernels, queue);
  for (std::size_t i = 0; i < sum.copies.size(); ++i) {
    const TiedSums::Copy& copy = sum.copies[i];
    if (i > 0) {
      nn::Tensor grads = GradsOf(copy);
      TROUPE_RETURN_IF_ERROR(kernels.Copy(GradsOf(sum.copies[0]), grads));
    }
    BucketReductions& reductions =
        parts_.chunks[copy.chunk]->parameters().reductions();
    if (reductions.begins_late(copy.bucket)) continue;
    TROUPE_RETURN_IF_ERROR(reductions.Begin(copy.bucket));
  }
  const base::Event there = nn::Record(kernels, queue);
  for (const TiedSums::Copy& copy : sum.copies) {
    parts_.events.NoteSummed(copy.chunk, copy.bucket, there);
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
