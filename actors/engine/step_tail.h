// What is left of a step when the next one begins: collectives that are under
// way, and the updates behind them. The next step's forward waits for the
// updates of what it reads, its first backward for all of them.
//
//   tail.Begin(step, trace, &loss, cursor);      // which is draining()
//   // Meanwhile, as collectives end: tail.cursor().Finish(id) and Give().
//   for (int id; (id = tail.NextUpdate(/*preferred=*/-1)) >= 0;) {
//     tail.cursor().Start(id);
//     TROUPE_RETURN_IF_ERROR(chunk->Update(k, tail.loss().scalars()));
//     tail.cursor().Finish(id);
//   }
//   if (tail.complete()) tail.End();
//
// Source: Peng et al. 2019, doi:10.1145/3341301.3359642 (ByteScheduler), sec. 2
// (what may overtake what, and why what is read first is to go first).
//
// Threads: one at a time.

#ifndef ACTORS_ENGINE_STEP_TAIL_H_
#define ACTORS_ENGINE_STEP_TAIL_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "actors/chunks/step_loss.h"
#include "actors/chunks/step_trace.h"
#include "pipeline/table_cursor.h"

namespace troupe::actors {

class StepTail {
 public:
  // `spare`: a cursor of the table that all steps have.
  explicit StepTail(pipeline::TableCursor spare) : cursor_(std::move(spare)) {}

  // Takes over what is left of step `step`. `cursor` gets the spare one, for
  // the next step. `loss` is the step's, and outlives the tail.
  void Begin(std::int64_t step, const StepTrace& trace, StepLoss* loss,
             pipeline::TableCursor& cursor) {
    step_ = step;
    trace_.emplace(trace);
    loss_ = loss;
    std::swap(cursor_, cursor);
  }
  void End() { trace_.reset(); }

  bool active() const { return trace_.has_value(); }
  bool IsOf(std::int64_t step) const { return active() && step == step_; }
  bool complete() const { return cursor_.complete(); }

  // An update that may run now: `preferred`, where that is one, else the first
  // of the table; or -1.
  int NextUpdate(int preferred) const {
    return preferred >= 0 && cursor_.Runnable(preferred)
               ? preferred
               : cursor_.NextRunnable(/*busy=*/true);
  }

  // These four are those of the step that it took over.
  std::int64_t step() const { return step_; }
  pipeline::TableCursor& cursor() { return cursor_; }
  const pipeline::TableCursor& cursor() const { return cursor_; }
  StepTrace& trace() { return *trace_; }
  StepLoss& loss() { return *loss_; }

 private:
  pipeline::TableCursor cursor_;
  std::int64_t step_ = -1;
  std::optional<StepTrace> trace_;  // none: nothing is left
  StepLoss* loss_ = nullptr;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_TAIL_H_
