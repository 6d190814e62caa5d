// Runs the training steps of a rank whose device records graphs. For each shape
// of batches, the first steps run one action after the other, the next one is
// recorded, and all later ones launch that graph (step_graph.h decides).
//
//   if (RecordsSteps(parts, dispatcher)) {
//     recorder.emplace(parts, dispatcher, trace);
//   }
//   TROUPE_RETURN_IF_ERROR(recorder->RunStep(step, std::move(batches)));
//
// Threads: the compute strand's.

#ifndef ACTORS_ENGINE_RECORDING_STEP_RECORDER_H_
#define ACTORS_ENGINE_RECORDING_STEP_RECORDER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "actors/chunks/step/step_trace.h"
#include "actors/chunks/step/step_types.h"
#include "actors/engine/dispatcher.h"
#include "actors/engine/engine_parts.h"
#include "actors/engine/recording/step_graph.h"

namespace troupe::actors {

// Returns whether this rank's training steps can be recorded.
bool RecordsSteps(const EngineParts& parts, const Dispatcher& dispatcher);

class StepRecorder {
 public:
  // All arguments outlive it. `trace`: the trace of the present step.
  StepRecorder(const EngineParts& parts, Dispatcher& dispatcher,
               StepTrace& trace);

  absl::Status RunStep(std::int64_t step, StepBatches batches);

 private:
  // Returns false if nothing was recorded: then the step must still be run.
  absl::StatusOr<bool> Capture(std::int64_t step, const StepBatches& batches);
  // `begun`: whether Capture() has already begun the step.
  absl::Status Launch(std::int64_t step, const StepBatches& batches,
                      bool begun);
  StepLoss& loss() { return *dispatcher_.present().loss; }

  const EngineParts& parts_;
  Dispatcher& dispatcher_;
  StepTrace& trace_;
  StepGraphs graphs_;
};

}  // namespace troupe::actors

#endif  // ACTORS_ENGINE_RECORDING_STEP_RECORDER_H_
