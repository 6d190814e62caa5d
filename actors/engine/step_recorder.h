// Runs the training steps of a rank whose device records graphs: some of them
// one action after the other, one of each shape while it is recorded, all later
// ones as a launch of that (step_graph.h chooses).
//
//   if (RecordsSteps(parts, dispatcher)) {
//     recorder.emplace(parts, dispatcher, trace);
//   }
//   TROUPE_RETURN_IF_ERROR(recorder->RunStep(step, std::move(batches)));
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_STEP_RECORDER_H_
#define ACTORS_ENGINE_STEP_RECORDER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step_trace.h"
#include "actors/chunks/step_types.h"
#include "actors/engine/dispatcher.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/step_graph.h"

namespace troupe::actors {

// Whether this rank's training steps can be recorded.
bool RecordsSteps(const EngineParts& parts, const Dispatcher& dispatcher);

class StepRecorder {
 public:
  // All outlive it. `trace`: of the present step.
  StepRecorder(const EngineParts& parts, Dispatcher& dispatcher,
               StepTrace& trace);

  absl::Status RunStep(std::int64_t step, StepBatches batches);

 private:
  // False where nothing was recorded: the step has still to run.
  absl::StatusOr<bool> Capture(std::int64_t step, const StepBatches& batches);
  // `begun`: by Capture().
  absl::Status Launch(std::int64_t step, const StepBatches& batches,
                      bool begun);
  StepLoss& loss() { return *dispatcher_.present().loss; }

  const EngineParts& parts_;
  Dispatcher& dispatcher_;
  StepTrace& trace_;
  StepGraphs graphs_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_STEP_RECORDER_H_
