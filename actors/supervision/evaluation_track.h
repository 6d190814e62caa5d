// What a run remembers of its evaluations: which was the best, and for how many
// of them it has not become better. The supervisor keeps the best checkpoint,
// and stops early, by it.
//
//   EvaluationTrack track(spec, resume.evaluations);
//   track.Add(report, /*counts=*/true);
//   track.best_step();          // 400: keep that checkpoint
//   track.HasConverged();       // true: no evaluation got better for too long
//   track.StateWith(/*due=*/false);   // into the checkpoint
//
// Two questions, two answers. The best evaluation is that of the smallest loss,
// or the highest accuracy, by however little. An evaluation without improvement
// is one that does not beat the last improvement by more than
// JobSpec::early_stop_min_delta, as in PyTorch Lightning's EarlyStopping; after
// JobSpec::early_stop_patience of them in a row the run has converged
// (Prechelt 1998, "Early Stopping - But When?").
// A value that is no finite number is no improvement.
//
// Threads: the supervisor's strand.

#ifndef ACTORS_SUPERVISION_EVALUATION_TRACK_H_
#define ACTORS_SUPERVISION_EVALUATION_TRACK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/checkpoint/trainer_state.h"
#include "actors/setup/job_report.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

class EvaluationTrack {
 public:
  // `saved`: that of the checkpoint which the run goes on from. What was
  // measured by another metric than the spec's is forgotten.
  EvaluationTrack(std::shared_ptr<const JobSpec> spec,
                  const std::optional<EvaluationState>& saved);

  // Whether anything depends on it.
  bool active() const;
  // `counts`: whether the evaluation is one of the run's plan. One that only
  // the end of a run has asked for is no step towards an early stop, so that a
  // run in two parts stops where one in one part does.
  void Add(const EvaluationReport& report, bool counts);
  bool HasConverged() const;
  // 0: there is none yet.
  std::int64_t best_step() const { return state_.best_step; }
  // One sentence on why it has converged.
  std::string ToString() const;
  // Whether an evaluation of the step that the run begins at is still to come.
  bool due() const { return state_.due; }

  // For a checkpoint; none where nothing depends on it.
  std::optional<EvaluationState> StateWith(bool due) const;

 private:
  bool IsBetter(double value, double than, double by) const;

  const std::shared_ptr<const JobSpec> spec_;
  EvaluationState state_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_EVALUATION_TRACK_H_
