// The state of one checkpoint in the supervisor: which shards are copied, which
// are written, and which action can follow. Plain data, without actors.
//
//   SaveRound round;
//   round.Begin(/*step=*/100, /*shards=*/2, /*ranks=*/2);
//   round.SnapshotTaken(100, 0), round.SnapshotTaken(100, 1);
//   round.Opened(100, "checkpoints/step-00000100.tmp-4711");
//   round.CanWrite();                         // true: folder and copies exist
//   round.ShardSaved(100, summary_of_1), round.ShardSaved(100, summary_of_0);
//   round.CanCommit();                        // true: every shard is written
//   round.End();
//
// `ranks`: number of ranks that report SnapshotTaken(), which has the number of
// the rank among them. Some may only take part in what comes before the copies,
// and have no shard.
//
// Reports may come in any order. One for another step, for a shard that does
// not exist, or a second time, returns false and changes nothing.
//
// Threads: one at a time.

#ifndef ACTORS_SUPERVISION_SAVE_ROUND_H_
#define ACTORS_SUPERVISION_SAVE_ROUND_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "actors/checkpoint/writer.h"

namespace troupe::actors {

class SaveRound {
 public:
  void Begin(std::int64_t step, int shards, int ranks) {
    *this = SaveRound();
    active_ = true;
    step_ = step;
    taken_.assign(ranks, false);
    saved_.assign(shards, false);
    snapshots_left_ = ranks;
    shards_left_ = shards;
  }
  void End() { active_ = false; }

  bool active() const { return active_; }
  std::int64_t step() const { return step_; }
  int shards() const { return static_cast<int>(saved_.size()); }
  const std::string& folder() const { return folder_; }
  const std::vector<ShardSummary>& summaries() const { return summaries_; }

  bool SnapshotTaken(std::int64_t step, int rank) {
    if (!IsNews(step, rank, taken_)) return false;
    taken_[rank] = true;
    --snapshots_left_;
    return true;
  }
  bool Opened(std::int64_t step, std::string folder) {
    if (!active_ || step != step_ || !folder_.empty()) return false;
    folder_ = std::move(folder);
    return true;
  }
  bool ShardSaved(std::int64_t step, const ShardSummary& summary) {
    if (!IsNews(step, summary.shard, saved_)) return false;
    saved_[summary.shard] = true;
    summaries_.push_back(summary);
    --shards_left_;
    return true;
  }

  // Whether every rank has reported, so that the ranks may go on.
  bool HasSnapshots() const { return active_ && snapshots_left_ == 0; }
  bool CanWrite() const { return HasSnapshots() && !folder_.empty(); }
  bool CanCommit() const { return CanWrite() && shards_left_ == 0; }

  bool ShardIsSaved(int shard) const { return saved_[shard]; }

  // Returns "2 of 3 shards of step 100 are written, not 1", for the error
  // message of a checkpoint that makes no progress.
  std::string ToString() const {
    std::string missing;
    for (int i = 0; i < shards(); ++i) {
      if (!saved_[i]) absl::StrAppend(&missing, missing.empty() ? "" : ", ", i);
    }
    return absl::StrCat(shards() - shards_left_, " of ", shards(),
                        " shards of step ", step_, " are written",
                        missing.empty() ? "" : ", not ", missing);
  }

 private:
  bool IsNews(std::int64_t step, int number,
              const std::vector<bool>& known) const {
    return active_ && step == step_ && number >= 0 &&
           number < static_cast<int>(known.size()) && !known[number];
  }

  bool active_ = false;
  std::int64_t step_ = 0;
  std::string folder_;
  std::vector<bool> taken_;  // one for each rank that reports
  std::vector<bool> saved_;  // one for each shard
  int snapshots_left_ = 0, shards_left_ = 0;
  std::vector<ShardSummary> summaries_;  // sorted by arrival
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_SAVE_ROUND_H_
