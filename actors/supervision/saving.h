// The supervisor's part in checkpoints: asks for the copies of a step, for a
// folder, for each shard and for the name, each when what it needs is there.
//
//   Saving saving;
//   saving.Init(self, process, crew);
//   if (saving.IsOverdue()) saving.Begin(step, evaluations);
//   bool ranks_may_go_on = saving.OnSnapshotTaken(taken);
//   saving.OnCheckpointOpened(opened);
//   saving.OnShardSaved(shard);
//   bool is_whole = saving.OnCheckpointSaved(saved);      // at saved.path
//
// News of another step are refused with false. Messages of another generation
// never come here.
//
// Threads: the supervisor's strand.

#ifndef ACTORS_SUPERVISION_SAVING_H_
#define ACTORS_SUPERVISION_SAVING_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/protocol/messages.h"
#include "actors/setup/process_context.h"
#include "actors/supervision/save_round.h"

namespace troupe::actors {

struct Crew;

class Saving {
 public:
  using Self = SupervisorActor::pointer;
  using TimePoint = std::chrono::steady_clock::time_point;

  void Init(Self self, ProcessContextPtr process, std::shared_ptr<Crew> crew);

  // One checkpoint at a time: from Begin() until it is saved.
  bool active() const { return round_.active(); }
  bool HasSnapshots() const { return round_.HasSnapshots(); }
  // Whether the time since the last copies, or the start, asks for another.
  bool IsOverdue() const;
  // The step of the last copies, or -1.
  std::int64_t snapshot_step() const { return snapshot_step_; }
  // The last sign of a writer, or of Begin().
  TimePoint last_sign() const { return last_sign_; }
  // SaveRound::ToString()
  std::string ToString() const { return round_.ToString(); }

  // `evaluations`: of the checkpoint's TrainerState.
  void Begin(std::int64_t step,
             const std::optional<EvaluationState>& evaluations);
  // True once, when all copies are there.
  bool OnSnapshotTaken(const SnapshotTaken& taken);
  void OnCheckpointOpened(const CheckpointOpened& opened);
  void OnShardSaved(const ShardSaved& saved);
  // Whether it was the checkpoint in progress.
  bool OnCheckpointSaved(const CheckpointSaved& saved);

 private:
  TimePoint Now() const { return self_->clock().now(); }
  void WriteShardsIfReady();

  Self self_ = nullptr;
  ProcessContextPtr process_;
  std::shared_ptr<Crew> crew_;
  SaveRound round_;
  std::optional<EvaluationState> evaluations_;  // of the round's step
  TimePoint last_sign_;
  TimePoint saved_at_;  // the last copies, or the start
  std::int64_t snapshot_step_ = -1;
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_SAVING_H_
