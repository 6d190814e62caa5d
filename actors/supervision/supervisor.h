// The supervisor of a job: grants steps, collects progress, decides when to
// evaluate and save, and ends the job, with its result or the first failure.
//
// Takes  begin                        when the crew is complete
//        Progress, Alive, Evaluated, SnapshotTaken   from the ranks
//        CheckpointOpened, ShardSaved, CheckpointSaved   from checkpointers
//        reported                     from the reporter: a credit
//        Failure                      from any actor of the job
//        RankWaits                    from ranks, as the answer to AskWaits
//        halt                         a stop was requested
// Gives  Grant, Evaluate, TakeSnapshot, SaveShard, AskWaits, EndRank to the
//        ranks;
//        BeginCheckpoint and CommitCheckpoint to the checkpointer; reports
//        and the result to the reporter
//
// The supervisor communicates with ranks by messages only. These are small,
// without tensors, and may come from another process. Messages of another
// generation are dropped.
//
// A checkpoint stops the ranks only while they copy their shards. Each holder
// writes its shard while training goes on; once all are written, one writer
// gives the checkpoint its final name. One checkpoint is in progress at a time,
// and the job's end waits for the last one.
//
// A job runs from boundary to boundary: the next evaluation, checkpoint, or its
// end. Steps up to a boundary are granted in windows, so that a stop takes
// effect within a window or two. At a boundary every rank has committed exactly
// the granted steps, and the evaluation or checkpoint is made. If a checkpoint
// is due by time, the last granted step becomes a boundary: one clock decides
// for all ranks.
//
// If the job keeps the best checkpoint, or may stop early, the checkpoint of a
// step contains the result of its evaluation (evaluation_track.h): the copies
// are made first, and the checkpoint gets its name after the evaluation. A job
// that stops early ends at a boundary, as if its steps were done.
//
// The first failure becomes the outcome. It ends every rank, which aborts its
// collectives, so that no rank waits for one that has ended. Silence is a
// failure too: if no rank gives a sign of life for JobSpec::timeout, the error
// says how many steps each rank has done; likewise if a checkpoint makes no
// progress. A failure that says that a process or rank is lost, silent or late
// is held for a moment, until the ranks have reported which ranks they wait for
// (diagnosis.h). A checkpoint whose copies are all made is completed before
// the job ends by a failure, unless that makes it impossible: the failure
// belongs to a later step, or to an evaluation.
//
// The reporter calls the observer (reporter.h). An observer that falls far
// behind delays the grants, and so the job, but no report is lost.

#ifndef ACTORS_SUPERVISION_SUPERVISOR_H_
#define ACTORS_SUPERVISION_SUPERVISOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"
#include "actors/supervision/crew.h"
#include "actors/supervision/diagnosis.h"
#include "actors/supervision/due_work.h"
#include "actors/supervision/evaluation_round.h"
#include "actors/supervision/report_outbox.h"
#include "actors/supervision/saving.h"
#include "actors/supervision/step_grants.h"
#include "actors/supervision/watchdog.h"

namespace troupe::actors {

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
  // Handles an exception that one of the supervisor's own handlers has thrown.
  void OnException(const absl::Status& status);

 private:
  using TimePoint = Watchdog::TimePoint;
  // kStarting: the crew is still being spawned, in another thread. kSaving: the
  // ranks are stopped, to copy their shards or because an earlier checkpoint is
  // still being written. kFailing: the job has failed; the failure is held, or
  // a checkpoint completed.
  enum class Doing {
    kStarting,
    kSteps,
    kEvaluating,
    kSaving,
    kFailing,
    kEnded
  };

  // Whether a message is of this generation, and the job has not failed.
  bool IsCurrent(std::int32_t generation) const;
  // Whether a checkpointer's message is of this generation, and the job has not
  // ended.
  bool MaySave(std::int32_t generation) const;
  // Whether `message`, which reports `what`, is current and from a rank of the
  // job. Fails the job if it has no such rank.
  template <typename Message>
  bool IsFromRank(const Message& message, absl::string_view what) {
    if (!IsCurrent(message.generation)) return false;
    const absl::Status status = grants_->CheckRank(message.rank, what);
    if (!status.ok()) Fail(/*rank=*/-1, "supervisor", status);
    return status.ok();
  }
  std::int64_t Committed() const { return grants_->Committed(); }
  double Seconds() const;  // since the job started
  void GrantSteps();
  // Called when all ranks have reached a boundary: starts the evaluation or
  // checkpoint that is due, ends the job, or grants further steps.
  void AtBoundary();
  void BeginEvaluation();
  void Watch();
  void SendReports();
  // Ends a job that has failed, once the decision is made and no checkpoint is
  // left to complete.
  void EndIfRipe();
  void End(absl::StatusOr<JobResult> result);
  bool CheckpointDue() const;
  bool AtEnd() const { return due_->AtEnd(Committed(), grants_->halted()); }

  Self self_ = nullptr;
  ProcessContextPtr process_;
  CrewPtr crew_;
  Doing doing_ = Doing::kStarting;
  TimePoint start_;
  Watchdog watchdog_;  // expires when no rank gives a sign of life

  std::optional<StepGrants> grants_;
  std::optional<DueWork> due_;
  EvaluationRound evaluation_;
  Saving saving_;
  std::optional<ReportOutbox> reports_;
  Diagnosis diagnosis_;
  JobResult result_;
};

SupervisorActor::behavior_type SupervisorBehavior(SupervisorState::Self self,
                                                  ProcessContextPtr process,
                                                  CrewPtr crew);

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_SUPERVISOR_H_
