// A step under way, and the losses of such steps.
//
//   StepInFlight step(table, /*buckets=*/{2}, &trace);
//   step.Begin(StepKind::kTrain, /*step=*/0, &losses.Next());
//   const int next = step.cursor.NextRunnable(/*busy=*/false);
//   step.ActionAt(next).kind;                  // ActionKind::kForward
//
// Where training steps overlap, two are under way: what is left of the earlier
// one, and the present one (dispatcher.h).
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_STEP_IN_FLIGHT_H_
#define ACTORS_ENGINE_STEP_IN_FLIGHT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step_loss.h"
#include "actors/chunks/step_trace.h"
#include "actors/chunks/step_types.h"
#include "nn/kernels/kernels.h"
#include "pipeline/schedule.h"
#include "pipeline/table_cursor.h"
#include "pipeline/table_index.h"

namespace troupe::actors {

struct StepInFlight {
  // `buckets`, by chunk: how many give signals. The trace outlives the step.
  StepInFlight(const pipeline::StepTable& table,
               const std::vector<int>& buckets, StepTrace* trace)
      : cursor(table, buckets), index(table), trace(trace) {}

  // The next step with this table begins. The loss outlives it.
  void Begin(StepKind its_kind, std::int64_t number, StepLoss* its_loss) {
    kind = its_kind;
    step = number;
    loss = its_loss;
    loss_reduced = inspected = concluded = false;
    under_way = true;
    cursor.Begin();
  }
  bool IsOf(std::int64_t number) const { return under_way && step == number; }
  const pipeline::Action& ActionAt(int id) const {
    return cursor.table().actions[id];
  }
  bool IsDone(int id) const {
    return cursor.Given({pipeline::SignalKind::kDone, id});
  }

  StepKind kind = StepKind::kTrain;
  std::int64_t step = -1;
  bool under_way = false;
  pipeline::TableCursor cursor;
  const pipeline::TableIndex index;
  StepTrace* trace;
  StepLoss* loss = nullptr;
  bool loss_reduced = false;
  // The gradients of the step as a whole: what they are like is known to this
  // rank, to all.
  bool inspected = false, concluded = false;
};

// Why collective `id` of the step failed: with step and part, where its group
// says so of its ranks, which came with different collectives or did not come.
absl::Status CollectiveError(const StepInFlight& step, int id,
                             const absl::Status& why);

// The losses of a rank's steps. Training steps take turns where they overlap;
// an evaluation uses that of the last training step.
class StepLosses {
 public:
  // Errors: those of StepLoss::Create().
  static absl::StatusOr<StepLosses> Create(nn::Kernels& kernels,
                                           const StepLoss::Options& options,
                                           bool overlap);

  // Returns the loss for the next training step.
  StepLoss& Next() {
    turn_ = (turn_ + 1) % losses_.size();
    return present();
  }
  StepLoss& present() { return losses_[turn_]; }
  // Where scalars are that no step has changed.
  const StepLoss& first() const { return losses_[0]; }
  // Returns the next losses as StepLoss::Take() does, in the order of steps.
  absl::StatusOr<std::optional<LossBits>> Take();

 private:
  std::vector<StepLoss> losses_;  // two where steps overlap
  std::size_t turn_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_IN_FLIGHT_H_
