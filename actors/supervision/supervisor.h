// The supervisor of a job: grants steps, gathers progress, decides when to
// evaluate and save, and ends the job, well or with the first failure.
//
// Takes  begin                        from whoever spawned the crew
//        Progress, Alive, Evaluated, SnapshotTaken   from the ranks
//        CheckpointOpened, ShardSaved, CheckpointSaved   from checkpointers
//        reported                     from the reporter: a credit
//        Failure                      from any actor of the job
//        RankWaits                    from ranks that were asked
//        halt                         a stop was requested
// Gives  Grant, Evaluate, TakeSnapshot, SaveShard, AskWaits, EndRank to the
//        ranks;
//        BeginCheckpoint and CommitCheckpoint to the checkpointer; reports
//        and the result to the reporter
//
// It knows ranks by their messages alone: small ones, without tensors, that
// could come from another process. Messages of another generation are dropped.
//
// A checkpoint stops the ranks only for their copies: each holder's shard is
// written while training goes on; when all are there, one writer gives the
// checkpoint its name. One at a time; the end waits for the last.
//
// A job goes from boundary to boundary: the next evaluation, checkpoint, or
// its end. Steps up to a boundary are granted in windows, so that a stop takes
// effect within one; at the boundary every rank has done exactly these steps,
// and what is due there happens. A checkpoint that is due by time makes the end
// of what is granted a boundary: one decision, and one clock, for all ranks.
//
// Where the best checkpoint is kept, or the job may stop early, an evaluation
// comes before the checkpoint of the same step, which remembers what it said
// (evaluation_track.h). A job that stops early ends as if its steps were done:
// all ranks stand at that boundary.
//
// The first failure counts: it ends every rank, which aborts its collectives,
// so that none waits for one that is gone; and it becomes the outcome. Silence
// is a failure too: where no rank gives a sign of life for JobSpec::timeout,
// the job says which rank stands where; so it is with a checkpoint. Where
// somebody is lost, silent or late, the verdict is held for a moment, until the
// ranks have said whom they wait for (held_verdict.h).
//
// The observer is called elsewhere (reporter.h). One that falls far behind
// holds up the grants, and so the job, but loses nothing.

#ifndef ACTORS_SUPERVISION_SUPERVISOR_H_
#define ACTORS_SUPERVISION_SUPERVISOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/messages.h"
#include "actors/protocol/report_queue.h"
#include "actors/setup/process_context.h"
#include "actors/supervision/evaluation_track.h"
#include "actors/supervision/held_verdict.h"
#include "actors/supervision/milestones.h"
#include "actors/supervision/saving.h"
#include "actors/supervision/step_reports.h"

namespace troupe::actors {

// Whom the supervisor talks to.
struct Crew {
  // By rank; null in a crew that never was complete.
  std::vector<RankActor> ranks;
  // One for each process; the first makes folders and gives them their names.
  std::vector<CheckpointerActor> checkpointers;
  ReporterActor reporter;
};
using CrewPtr = std::shared_ptr<Crew>;

class SupervisorState {
 public:
  static inline const char* name = "supervisor";
  using Self = SupervisorActor::stateful_pointer<SupervisorState>;

  void Init(Self self, ProcessContextPtr process, CrewPtr crew);
  void OnBegin();
  void OnProgress(const Progress& progress);
  void OnAlive(const Alive& alive);
  void OnEvaluated(const Evaluated& evaluated);
  void OnSnapshotTaken(const SnapshotTaken& taken);
  void OnCheckpointOpened(const CheckpointOpened& opened);
  void OnShardSaved(const ShardSaved& saved);
  void OnCheckpointSaved(const CheckpointSaved& saved);
  void OnReported();
  void OnFailure(const Failure& failure);
  void OnRankWaits(const RankWaits& answer);
  void OnAsk();
  void Fail(int rank, const std::string& actor, const absl::Status& status);
  void OnHalt();
  void OnWatch();
  void OnDown(const caf::down_msg& down);
  // A handler of the supervisor's own has thrown.
  void OnException(const absl::Status& status);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  // kSaving: the ranks stand still, for their copies or because an earlier
  // checkpoint is still being written. kFailing: the verdict is held.
  enum class Doing { kSteps, kEvaluating, kSaving, kFailing, kEnded };

  // Whether a message is of this generation, and the job goes on.
  bool IsCurrent(std::int32_t generation) const;
  bool CrewIsComplete() const;
  std::int64_t Committed() const;  // by the slowest rank
  double Seconds() const;
  void GrantSteps();
  void Pace(std::int64_t committed);
  void ReportSteps(const Progress& progress);
  // All ranks stand at a boundary: does what is due, else goes on.
  void AtBoundary();
  void BeginEvaluation();
  void Watch();
  std::string WhereRanksStand() const;
  void SendReports();
  void EndIfRipe();
  void End(absl::StatusOr<JobResult> result);
  bool CheckpointDue() const;
  bool EvaluationDue() const;
  bool AtEnd() const;
  // Whether the run's plan has an evaluation where the ranks stand.
  bool IsPlannedEvaluation() const;
  // What a checkpoint of where the ranks stand remembers.
  std::optional<EvaluationState> EvaluationsNow() const;

  Self self_ = nullptr;
  ProcessContextPtr process_;
  CrewPtr crew_;
  std::optional<Milestones> milestones_;
  Doing doing_ = Doing::kSteps;
  TimePoint start_;
  TimePoint last_sign_;  // of life, by any rank

  std::vector<std::int64_t> done_;  // by rank: steps committed
  std::int64_t granted_ = 0;
  std::int64_t boundary_ = 0;
  std::int64_t window_ = 1;
  std::int64_t window_max_ = 0;
  double window_seconds_ = 0;  // when the current pace was last taken
  std::int64_t window_step_ = 0;
  // Before `begin` the crew is still being spawned, in another thread: what
  // arrives until then is kept.
  bool begun_ = false;
  std::optional<Failure> early_failure_;
  std::optional<HeldVerdict> verdict_;  // where it fails
  bool halted_ = false;
  std::int64_t evaluated_at_ = -1;

  std::vector<Evaluated> evaluations_;
  std::optional<EvaluationTrack> track_;
  Saving saving_;
  std::optional<StepReports> step_reports_;
  ReportQueue reports_;
  bool reporting_ = false;  // the reporter has a batch, and so the credit
  JobResult result_;
};

SupervisorActor::behavior_type SupervisorBehavior(SupervisorState::Self self,
                                                  ProcessContextPtr process,
                                                  CrewPtr crew);

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_SUPERVISOR_H_
