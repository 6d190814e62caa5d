#include "actors/supervision/saving.h"

#include <algorithm>
#include <utility>

#include "actors/caf/actor_timeout.h"
#include "actors/supervision/replica_check.h"

namespace troupe::actors {

void Saving::Init(Self self, ProcessContextPtr process, CrewPtr crew) {
  self_ = self;
  process_ = std::move(process);
  crew_ = std::move(crew);
  watchdog_ = Watchdog(process_->spec->timeout);
  saved_at_ = Now();
  // A resumed job has a checkpoint of its first step already.
  if (!process_->resume.path.empty()) {
    snapshot_step_ = process_->span->first_step;
  }
}

bool Saving::IsOverdue() const {
  const CheckpointOptions& options = process_->spec->checkpoint;
  return !options.dir.empty() && options.every_time > absl::ZeroDuration() &&
         !active() && Now() - saved_at_ >= ActorTimeout(options.every_time);
}

void Saving::Begin(std::int64_t step) {
  knows_evaluations_ = false;
  const pipeline::Mesh& mesh = process_->plan->mesh;
  asked_.clear();
  hashes_.assign(mesh.size(), {});
  for (int rank = 0; rank < mesh.size(); ++rank) {
    if (Compares() || IsWriter(rank) || TakesPart(rank)) {
      asked_.push_back(rank);
    }
  }
  round_.Begin(step, mesh.pp(), static_cast<int>(asked_.size()),
               static_cast<int>(WritersOf(0).size()));
  watchdog_.Kick(Now());
  self_->send(crew_->checkpointers.front(),
              BeginCheckpoint{process_->generation, step});
  for (const int rank : asked_) {
    self_->send(crew_->ranks[rank],
                TakeSnapshot{process_->generation, step, IsWriter(rank),
                             Compares(), WritesInPlace()});
  }
}

bool Saving::Compares() const {
  return process_->spec->checkpoint.compare_replicas &&
         process_->plan->mesh.size() > process_->plan->mesh.pp();
}

bool Saving::TakesPart(int rank) const {
  const pipeline::Plan& plan = *process_->plan;
  return plan.SharesBuffers(rank) ||
         (!WritesInPlace() && (plan.owners() > 1 || plan.GathersPieces(rank)));
}

bool Saving::WritesInPlace() const {
  const pipeline::Plan& plan = *process_->plan;
  return process_->spec->checkpoint.in_place && crew_->share_folder &&
         (plan.owners() > 1 || plan.SplitsParameters());
}

bool Saving::IsWriter(int rank) const {
  const pipeline::Plan& plan = *process_->plan;
  int first = plan.mesh.RankWith(rank, pipeline::kPpAxis, 0);
  if (WritesInPlace() && plan.owners() > 1) {
    first = plan.mesh.RankWith(first, pipeline::kDpAxis, 0);
  }
  if (WritesInPlace() && plan.SplitsParameters()) {
    first = plan.mesh.RankWith(first, pipeline::kTpAxis, 0);
  }
  return first == 0;
}

std::vector<int> Saving::WritersOf(int stage) const {
  const pipeline::Mesh& mesh = process_->plan->mesh;
  std::vector<int> writers;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    if (mesh.CoordsOf(rank).pp == stage && IsWriter(rank)) {
      writers.push_back(rank);
    }
  }
  return writers;
}

bool Saving::OnSnapshotTaken(const SnapshotTaken& taken) {
  const auto asked = std::find(asked_.begin(), asked_.end(), taken.rank);
  if (asked == asked_.end() ||
      !round_.SnapshotTaken(taken.step,
                            static_cast<int>(asked - asked_.begin()))) {
    return false;
  }
  watchdog_.Kick(Now());
  hashes_[taken.rank] = taken.hashes;
  if (!HasSnapshots()) return false;
  replicas_ = CheckReplicas(*process_->plan, taken.step, hashes_);
  if (!replicas_.ok()) {
    GiveUp();
    return true;
  }
  snapshot_step_ = taken.step;
  saved_at_ = Now();
  WriteShardsIfReady();
  return true;
}

void Saving::OnCheckpointOpened(const CheckpointOpened& opened) {
  if (!round_.Opened(opened.step, opened.folder)) return;
  watchdog_.Kick(Now());
  WriteShardsIfReady();
}

void Saving::WriteShardsIfReady() {
  if (!round_.CanWrite() || given_up_) return;
  for (int stage = 0; stage < round_.shards(); ++stage) {
    SaveShard save;
    save.generation = process_->generation;
    save.step = round_.step();
    save.shards = round_.shards();
    save.writers = round_.writers();
    save.folder = round_.folder();
    for (const int rank : WritersOf(stage)) {
      self_->send(crew_->ranks[rank], save);
      ++save.writer;
    }
  }
}

void Saving::OnShardSaved(const ShardSaved& saved) {
  if (!round_.ShardSaved(saved.step, saved.summary)) return;
  watchdog_.Kick(Now());
  CommitIfReady();
}

void Saving::SetEvaluations(std::int64_t step,
                            const std::optional<EvaluationState>& evaluations) {
  if (!active() || step != round_.step() || knows_evaluations_) return;
  evaluations_ = evaluations;
  knows_evaluations_ = true;
  CommitIfReady();
}

void Saving::CommitIfReady() {
  if (!round_.CanCommit() || !knows_evaluations_) return;
  watchdog_.Kick(Now());
  CommitCheckpoint commit;
  commit.generation = process_->generation;
  commit.step = round_.step();
  commit.folder = round_.folder();
  commit.shards = round_.summaries();
  commit.evaluations = BitsOf(evaluations_);
  self_->send(crew_->checkpointers.front(), std::move(commit));
}

void Saving::OnFailure(const Failure& failure) {
  if (failure.actor == "checkpointer") GiveUp();
  if (failure.actor == "rank") OnLost(failure.rank, failure.rank + 1);
  const Roster* const roster = process_->links.roster.get();
  if (roster != nullptr && failure.process >= 0 &&
      failure.process < roster->processes()) {
    OnLost(roster->FirstRankOf(failure.process),
           roster->FirstRankOf(failure.process + 1));
  }
}

void Saving::OnLost(int begin, int end) {
  if (!active()) return;
  for (int stage = 0; stage < round_.shards(); ++stage) {
    int writer = 0;
    for (const int rank : WritersOf(stage)) {
      const bool is_lost = rank >= begin && rank < end;
      if (is_lost && !round_.IsSaved(stage, writer)) given_up_ = true;
      ++writer;
    }
  }
}

bool Saving::OnCheckpointSaved(const CheckpointSaved& saved) {
  if (!active() || saved.step != round_.step()) return false;
  round_.End();
  return true;
}

}  // namespace troupe::actors
