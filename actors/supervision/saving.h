// The supervisor's part in checkpoints: requests a folder and the copies of a
// step, then the writing of each shard, then the checkpoint's final name, each
// as soon as its inputs exist.
//
//   Saving saving;
//   saving.Init(self, process, crew);
//   if (saving.IsOverdue()) saving.Begin(step);
//   bool ranks_may_go_on = saving.OnSnapshotTaken(taken);
//   saving.OnCheckpointOpened(opened);
//   saving.OnShardSaved(shard);
//   saving.SetEvaluations(step, evaluations);
//   saving.OnFailure(failure);                            // of the job
//   bool is_whole = saving.OnCheckpointSaved(saved);      // at saved.path
//
// The checkpoint gets its final name once its shards are written and the
// evaluation of its step is known, so that an evaluation that fails costs no
// checkpoint.
//
// A report for another step is ignored, and returns false. The caller drops
// messages of another generation.
//
// Threads: the supervisor's strand.

#ifndef ACTORS_SUPERVISION_SAVING_H_
#define ACTORS_SUPERVISION_SAVING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"
#include "actors/supervision/crew.h"
#include "actors/supervision/save_round.h"
#include "actors/supervision/watchdog.h"

namespace troupe::actors {

class Saving {
 public:
  using Self = SupervisorActor::pointer;
  using TimePoint = Watchdog::TimePoint;

  void Init(Self self, ProcessContextPtr process, CrewPtr crew);

  // Whether a checkpoint is in progress, from Begin() until it is saved. There
  // is one at a time.
  bool active() const { return round_.active(); }
  bool HasSnapshots() const { return round_.HasSnapshots(); }
  // Whether CheckpointOptions::every_time has passed since the last copies, or
  // the start of the job, and no checkpoint is in progress.
  bool IsOverdue() const;
  // Returns the step of the last copies, or -1.
  std::int64_t snapshot_step() const { return snapshot_step_; }
  // Whether a checkpoint is in progress that waits for no evaluation.
  bool IsWorking() const { return active() && !AwaitsEvaluation(); }
  // Returns the watchdog of the checkpoint in progress, which Begin() starts.
  const Watchdog& watchdog() const { return watchdog_; }
  // Returns SaveRound::ToString().
  std::string ToString() const { return round_.ToString(); }

  // Starts a checkpoint.
  void Begin(std::int64_t step);
  // Sets the state for the TrainerState of the checkpoint in progress. It has
  // no effect a second time, and if that checkpoint is of another step.
  void SetEvaluations(std::int64_t step,
                      const std::optional<EvaluationState>& evaluations);
  // Returns true once: for the report that completes the copies.
  bool OnSnapshotTaken(const SnapshotTaken& taken);
  // Returns the error of replicas that differ (replica_check.h). Nothing is
  // written then. Valid once the copies are complete.
  const absl::Status& replicas() const { return replicas_; }
  void OnCheckpointOpened(const CheckpointOpened& opened);
  void OnShardSaved(const ShardSaved& saved);
  // Returns whether this was the checkpoint in progress, which ends.
  bool OnCheckpointSaved(const CheckpointSaved& saved);

  // Whether the checkpoint in progress can be completed after the job has
  // failed: all copies are made.
  bool CanFinish() const { return HasSnapshots() && !given_up_; }
  // Notes which copies a failure destroys.
  void OnFailure(const Failure& failure);
  // Notes that the checkpoint in progress cannot be completed.
  void GiveUp() { given_up_ = true; }

 private:
  bool AwaitsEvaluation() const {
    return round_.CanCommit() && !knows_evaluations_;
  }
  void CommitIfReady();
  TimePoint Now() const { return self_->clock().now(); }
  void WriteShardsIfReady();
  // Notes that the ranks [begin, end) have ended, whose copies are lost unless
  // they are written.
  void OnLost(int begin, int end);
  // Returns whether all ranks that have parts of tensors write them into one
  // file: the ranks of all processes have the folder. False: whole tensors are
  // gathered on one rank of each stage.
  bool WritesInPlace() const;
  // Returns the ranks that write a stage, in the order of their numbers.
  std::vector<int> WritersOf(int stage) const;
  bool IsWriter(int rank) const;
  // Returns whether a rank gives others what they copy, or takes it.
  bool TakesPart(int rank) const;
  // Whether replicas are compared.
  bool Compares() const;

  Self self_ = nullptr;
  ProcessContextPtr process_;
  CrewPtr crew_;
  SaveRound round_;
  std::vector<int> asked_;  // ranks that the round waits for
  std::optional<EvaluationState> evaluations_;  // state at the round's step
  bool knows_evaluations_ = false;              // whether it is set
  bool given_up_ = false;
  // Reported hashes, by rank.
  std::vector<std::vector<std::uint64_t>> hashes_;
  absl::Status replicas_;
  Watchdog watchdog_;
  TimePoint saved_at_;  // time of the last copies, or of the start
  std::int64_t snapshot_step_ = -1;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_SAVING_H_
