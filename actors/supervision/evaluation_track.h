// Tracks the evaluations of a run: which was the best, and how many in a row
// have brought no improvement. The supervisor uses it to keep the best
// checkpoint and to stop early.
//
//   EvaluationTrack track(spec, resume.evaluations);
//   track.Add(report, /*counts=*/true);
//   track.best_step();          // 400: keep that checkpoint
//   track.HasConverged();       // true: no evaluation got better for too long
//   track.StateWith(/*due=*/false);   // into the checkpoint
//
// The best evaluation has the smallest loss, or the highest accuracy, by any
// margin. Early stopping needs a margin: an evaluation is an improvement if it
// beats the last improvement by more than JobSpec::early_stop_min_delta, as in
// PyTorch Lightning's EarlyStopping. After JobSpec::early_stop_patience
// evaluations in a row without improvement the run has converged (Prechelt
// 1998, "Early Stopping - But When?"). A value that is not finite is never an
// improvement.
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
  // `saved`: state from the checkpoint that the run resumes from. It is ignored
  // if its metric is not the spec's.
  EvaluationTrack(std::shared_ptr<const JobSpec> spec,
                  const std::optional<EvaluationState>& saved);

  // Whether the job keeps the best checkpoint or may stop early.
  bool active() const;
  // Adds an evaluation. `counts`: whether the run's plan asked for it. An
  // evaluation made only because the run ended does not count towards an early
  // stop, so that a run in two parts stops at the same step as a run in one.
  void Add(const EvaluationReport& report, bool counts);
  bool HasConverged() const;
  // Returns the step of the best evaluation; 0: none yet.
  std::int64_t best_step() const { return state_.best_step; }
  // Returns one sentence on why the run has converged.
  std::string ToString() const;
  // Whether the step that the run begins at has still to be evaluated.
  bool due() const { return state_.due; }

  // Returns the state for a checkpoint; none unless active().
  std::optional<EvaluationState> StateWith(bool due) const;

 private:
  bool IsBetter(double value, double than, double by) const;

  const std::shared_ptr<const JobSpec> spec_;
  EvaluationState state_;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_EVALUATION_TRACK_H_
