// A rank's part of one evaluation: its batches of the test set, on their way
// from the loader to the compute strand, and the sums of their losses. Plain
// data, without actors.
//
//   EvaluationRun run(/*step=*/100, *context);
//   while (auto request = run.window().NextRequest()) Send(loader, *request);
//   run.CountTargets(loaded);
//   run.window().OnLoaded(std::move(loaded), /*asked=*/2);
//   while (auto steps = run.window().NextRun(granted)) Send(compute, *steps);
//   run.AddLosses(done);                          // StepsDone
//   if (run.window().finished()) Report(run.Result());
//
// Losses are added in the order of batches, so the sums have the same bits in
// each run.
//
// Threads: one at a time.

#ifndef ACTORS_STRANDS_EVALUATION_RUN_H_
#define ACTORS_STRANDS_EVALUATION_RUN_H_

#include <cstdint>

#include "actors/protocol/messages.h"
#include "actors/setup/rank_context.h"
#include "actors/strands/load_window.h"

namespace troupe::actors {

class EvaluationRun {
 public:
  // Begins the evaluation after `step` steps. `context` outlives it.
  EvaluationRun(std::int64_t step, const RankContext& context);

  std::int64_t step() const { return step_; }
  // Credits and batches. Each run has one step.
  LoadWindow& window() { return window_; }
  const LoadWindow& window() const { return window_; }

  // Counts the targets of loaded batches (JobSpec::count_targets).
  void CountTargets(const Loaded& loaded);
  // Adds the losses of a run.
  void AddLosses(const StepsDone& done);
  // Returns the report of the sums so far.
  Evaluated Result() const;

 private:
  const RankContext& context_;
  const std::int64_t step_;
  // False on a rank that evaluates the same batches as another: its losses and
  // targets count as 0.
  const bool adds_;
  LoadWindow window_;
  double sum_ = 0, count_ = 0, correct_ = 0;
  std::int64_t targets_;  // Evaluated::targets so far
};

}  // namespace troupe::actors

#endif  // ACTORS_STRANDS_EVALUATION_RUN_H_
