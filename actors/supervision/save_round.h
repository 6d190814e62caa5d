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
// Several ranks may write each shard together (`writers`): it is written when
// all of them have reported.
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
  void Begin(std::int64_t step, int shards, int ranks, int writers = 1) {
    *this = SaveRound();
    active_ = true;
    step_ = step;
    shards_ = shards;
    writers_ = writers;
    taken_.assign(ranks, false);
    saved_.assign(shards * writers, false);
    snapshots_left_ = ranks;
    saves_left_ = shards * writers;
  }
  void End() { active_ = false; }

  bool active() const { return active_; }
  std::int64_t step() const { return step_; }
  int shards() const { return shards_; }
  int writers() const { return writers_; }
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
    if (summary.writer < 0 || summary.writer >= writers_) return false;
    const int save = summary.shard * writers_ + summary.writer;
    if (!IsNews(step, save, saved_)) return false;
    saved_[save] = true;
    summaries_.push_back(summary);
    --saves_left_;
    return true;
  }

  // Whether every rank has reported, so that the ranks may go on.
  bool HasSnapshots() const { return active_ && snapshots_left_ == 0; }
  bool CanWrite() const { return HasSnapshots() && !folder_.empty(); }
  bool CanCommit() const { return CanWrite() && saves_left_ == 0; }

  // Whether a writer of a shard has written what it has of it.
  bool IsSaved(int shard, int writer) const {
    return saved_[shard * writers_ + writer];
  }

  // Returns "2 of 3 shards of step 100 are written, not 1", for the error
  // message of a checkpoint that makes no progress; "not 1 by writers 0, 2" if
  // several write each.
  std::string ToString() const {
    std::string missing;
    int written = 0;
    for (int shard = 0; shard < shards_; ++shard) {
      std::string writers;
      for (int i = 0; i < writers_; ++i) {
        if (IsSaved(shard, i)) continue;
        absl::StrAppend(&writers, writers.empty() ? "" : ", ", i);
      }
      if (writers.empty()) {
        ++written;
        continue;
      }
      absl::StrAppend(&missing, missing.empty() ? "" : "; ", shard);
      if (writers_ > 1) absl::StrAppend(&missing, " by writers ", writers);
    }
    return absl::StrCat(written, " of ", shards_, " shards of step ", step_,
                        " are written", missing.empty() ? "" : ", not ",
                        missing);
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
  int shards_ = 0, writers_ = 1;
  std::vector<bool> saved_;  // one for each writer of each shard
  int snapshots_left_ = 0, saves_left_ = 0;
  std::vector<ShardSummary> summaries_;  // sorted by arrival
};

}  // namespace troupe::actors

#endif  // ACTORS_SUPERVISION_SAVE_ROUND_H_
