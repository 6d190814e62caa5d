// The state of a step under way: its position in the table, its trace, its
// loss. StepLosses has the losses of all steps.
//
//   StepInFlight step(table, /*buckets=*/{2}, &trace);
//   step.Begin(StepKind::kTrain, /*step=*/0, &losses.Next());
//   const int next = step.cursor.NextRunnable(/*busy=*/false);
//   step.ActionAt(next).kind;                  // ActionKind::kForward
//
// If training steps overlap, two are under way: the present one, and the tail
// of the earlier one (dispatcher.h).
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
#include "actors/chunks/step/step_loss.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/chunks/step/step_types.h"
#include "nn/kernels/kernels.h"
#include "pipeline/table/schedule.h"
#include "pipeline/table/table_cursor.h"
#include "pipeline/table/table_index.h"

namespace troupe::actors {

struct StepInFlight {
  // `buckets`, by chunk: number of buckets that give signals. The trace
  // outlives the step.
  StepInFlight(const pipeline::StepTable& table,
               const std::vector<int>& buckets, StepTrace* trace)
      : cursor(table, buckets), index(table), trace(trace) {}

  // Begins the next step with this table. The loss outlives it.
  void Begin(StepKind its_kind, std::int64_t number, StepLoss* its_loss) {
    kind = its_kind;
    step = number;
    loss = its_loss;
    loss_reduced = inspected = concluded = false;
    under_way = true;
    computing = -1;
    cursor.Begin();
  }
  // Takes over what is left of `other`, whose table is the same, and traces it
  // to `its_trace`. Afterwards `other` is no longer under way.
  void TakeOver(StepInFlight& other, StepTrace* its_trace) {
    kind = other.kind;
    step = other.step;
    loss = other.loss;
    loss_reduced = other.loss_reduced;
    inspected = other.inspected;
    concluded = other.concluded;
    trace = its_trace;
    std::swap(cursor, other.cursor);
    under_way = true;
    other.under_way = false;
  }
  // Replaces the table by one with the same actions in another order. No action
  // may be under way.
  void SetTable(const pipeline::StepTable& table) {
    cursor = pipeline::TableCursor(table, table.bucket_counts());
    index = pipeline::TableIndex(table);
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
  pipeline::TableIndex index;
  StepTrace* trace;
  StepLoss* loss = nullptr;
  bool loss_reduced = false;
  int computing = -1;  // the compute action that has begun last
  // Whether the norm of all gradients, and whether all are finite, is known for
  // this rank's gradients (`inspected`) and for those of all ranks
  // (`concluded`).
  bool inspected = false, concluded = false;
};

// Returns the error of collective `id` of the step. Step and part are added if
// the ranks of its group started different collectives (kFailedPrecondition) or
// some started none in time (kDeadlineExceeded).
absl::Status CollectiveError(const StepInFlight& step, int id,
                             const absl::Status& why);

// The losses of a rank's steps. If training steps overlap, they alternate
// between two; an evaluation uses that of the last training step.
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
  // Returns the loss whose scalars chunks keep (Chunk::Setup::scalars).
  const StepLoss& first() const { return losses_[0]; }
  // Returns the next losses as StepLoss::Take() does, in the order of steps.
  absl::StatusOr<std::optional<LossBits>> Take();

 private:
  std::vector<StepLoss> losses_;  // two if steps overlap
  std::size_t turn_ = 0;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_IN_FLIGHT_H_
