#include "pipeline/table/add_gathers.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

// A reader of the table in one of its parts.
struct Moment {
  int action = 0;  // position in the table
  bool begins = false;
  int part = 0;
};

// A use of a bucket by one reader, from one moment to another.
struct Use {
  int chunk = 0, bucket = 0;
  int first = 0, last = 0;  // moments
};

// The readers of a table in their parts, one after the other.
std::vector<Moment> MomentsOf(const StepTable& table,
                              const std::vector<ChunkReads>& chunks) {
  std::vector<int> parts;
  for (const ChunkReads& chunk : chunks) {
    int last = 0;
    for (const BucketReads& reads : chunk.buckets) {
      last = std::max(last, reads.last);
    }
    parts.push_back(last + 1);
  }
  std::vector<Moment> moments;
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    const Action& action = table.actions[i];
    if (!ReadsValues(action.kind)) continue;
    const bool forward = action.kind == ActionKind::kForward;
    for (int n = 0; n < parts[action.chunk]; ++n) {
      moments.push_back({i, n == 0, forward ? n : parts[action.chunk] - 1 - n});
    }
  }
  return moments;
}

// Gathers and releases that happen at each moment: gathers before it, releases
// behind it.
class Turns {
 public:
  Turns(const StepTable& table, const std::vector<Moment>& moments,
        const GatherOptions& options)
      : options_(options), gathers_(moments.size()), releases_(moments.size()) {
    std::vector<std::vector<Turn>> turns;
    for (const ChunkReads& chunk : options.chunks) {
      turns.emplace_back(chunk.buckets.size());
    }
    std::int64_t ahead = 0;  // bytes of uses that are gathered but not begun
    const std::vector<Use> uses = UsesOf(table, moments);
    std::size_t next = 0, begun = 0;
    for (int now = 0; now < static_cast<int>(moments.size()); ++now) {
      for (; begun < next && uses[begun].first <= now; ++begun) {
        ahead -= BytesOf(uses[begun]);
      }
      for (; next < uses.size(); ++next) {
        const Use& use = uses[next];
        if (use.first > now) {
          if (ahead + BytesOf(use) > options.bytes_ahead) break;
          ahead += BytesOf(use);
        } else {
          begun = next + 1;
        }
        Gather(use, now, turns[use.chunk][use.bucket]);
      }
    }
    for (std::size_t c = 0; c < turns.size(); ++c) {
      for (std::size_t k = 0; k < turns[c].size(); ++k) {
        if (turns[c][k].count == 0) continue;
        Release(static_cast<int>(c), static_cast<int>(k), turns[c][k]);
      }
    }
  }

  const std::vector<Action>& GathersAt(int moment) const {
    return gathers_[moment];
  }
  const std::vector<Action>& ReleasesAt(int moment) const {
    return releases_[moment];
  }

 private:
  // The present turn of a bucket.
  struct Turn {
    int count = 0;  // turns so far, the present one included
    int last = 0;   // moment of its last use so far
  };

  std::int64_t BytesOf(const Use& use) const {
    return options_.chunks[use.chunk].buckets[use.bucket].bytes;
  }

  // Returns all uses, in the order of their first moments.
  std::vector<Use> UsesOf(const StepTable& table,
                          const std::vector<Moment>& moments) const {
    std::vector<Use> uses;
    std::vector<std::vector<int>>
        open;  // indexed by chunk and bucket: use, or -1
    for (const ChunkReads& chunk : options_.chunks) {
      open.emplace_back(chunk.buckets.size(), -1);
    }
    for (int m = 0; m < static_cast<int>(moments.size()); ++m) {
      const int c = table.actions[moments[m].action].chunk;
      const ChunkReads& chunk = options_.chunks[c];
      if (moments[m].begins && !chunk.keep) {
        open[c].assign(chunk.buckets.size(), -1);
      }
      for (int k = 0; k < static_cast<int>(chunk.buckets.size()); ++k) {
        const BucketReads& reads = chunk.buckets[k];
        if (moments[m].part < reads.first || moments[m].part > reads.last) {
          continue;
        }
        if (open[c][k] < 0) {
          open[c][k] = static_cast<int>(uses.size());
          uses.push_back({c, k, m, m});
        }
        uses[open[c][k]].last = m;
      }
    }
    return uses;
  }

  // Gathers a bucket at `now` unless it is still there.
  void Gather(const Use& use, int now, Turn& turn) {
    if (turn.count == 0 || now > turn.last + 1) {
      if (turn.count > 0) Release(use.chunk, use.bucket, turn);
      gathers_[now].push_back(
          {ActionKind::kGatherValues, use.bucket, {}, use.chunk, turn.count++});
    }
    turn.last = use.last;
  }

  void Release(int chunk, int bucket, const Turn& turn) {
    releases_[turn.last].push_back(
        {ActionKind::kReleaseValues, bucket, {}, chunk, turn.count - 1});
  }

  const GatherOptions& options_;
  std::vector<std::vector<Action>> gathers_, releases_;  // indexed by moment
};

// Copies a table with the gathers and releases, and moves its reductions.
class Copier {
 public:
  Copier(const StepTable& table, const ReductionOptions& reductions,
         const GatherOptions& options)
      : table_(table),
        reductions_(reductions),
        options_(options),
        moments_(MomentsOf(table, options.chunks)),
        turns_(table, moments_, options),
        index_(table),
        ends_(options.chunks.size(), -1),
        reduced_(options.chunks.size()) {
    for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
      const Action& action = table.actions[i];
      if (EndsBackward(action.kind)) ends_[action.chunk] = i;
    }
  }

  StepTable Copy() {
    int moment = 0;
    for (int i = 0; i < static_cast<int>(table_.actions.size()); ++i) {
      const Action& action = table_.actions[i];
      if (Moves(action)) continue;
      if (ReadsValues(action.kind)) {
        CopyReader(i, moment);
      } else {
        Append(action);
      }
      if (!EndsBackward(action.kind)) continue;
      MoveReductions(i, /*part=*/0);
      reduced_[action.chunk] = 0;
    }
    return std::move(made_);
  }

 private:
  void Append(const Action& action) {
    made_.actions.push_back(
        {action.kind, action.index, {}, action.chunk, action.round});
  }

  // Copies the reader at position `i`, with what happens in its course.
  void CopyReader(int i, int& moment) {
    for (; moment < static_cast<int>(moments_.size()) &&
           moments_[moment].action == i;
         ++moment) {
      for (const Action& gather : turns_.GathersAt(moment)) Append(gather);
      if (moments_[moment].begins) {
        Append(table_.actions[i]);
      } else if (EndsBackward(table_.actions[i].kind)) {
        MoveReductions(i, moments_[moment - 1].part);
      }
      for (const Action& release : turns_.ReleasesAt(moment)) Append(release);
    }
  }

  // Returns whether the update of a bucket follows its reduction alone.
  bool FollowsReduction(int k, int chunk) const {
    return index_.Has(ActionKind::kUpdateBucket, k, chunk) &&
           !index_.Has(ActionKind::kReduceNorms, k, chunk);
  }

  bool Moves(const Action& action) const {
    return (action.kind == ActionKind::kReduceBucket ||
            (action.kind == ActionKind::kUpdateBucket &&
             FollowsReduction(action.index, action.chunk))) &&
           ends_[action.chunk] >= 0 &&
           !index_.Has(ActionKind::kReduceTied, action.index, action.chunk);
  }

  // Appends the reductions of the buckets whose gradients are complete when the
  // backward that ends at position `i` has run `part`, in the order of buckets:
  // those of its micro-batch, if each is reduced; behind the last backward of
  // the chunk the updates, too.
  void MoveReductions(int i, int part) {
    const Action& backward = table_.actions[i];
    const int chunk = backward.chunk;
    const bool last = ends_[chunk] == i;
    if (!last && !reductions_.each_micro_batch) return;
    const std::vector<BucketReads>& reads = options_.chunks[chunk].buckets;
    int& k = reduced_[chunk];
    for (; k < static_cast<int>(reads.size()) && reads[k].first >= part; ++k) {
      if (index_.Has(ActionKind::kReduceTied, k, chunk)) continue;
      int round = reductions_.each_micro_batch ? backward.index : 0;
      for (int at = 0; at >= 0; ++round) {
        at = index_.Find(ActionKind::kReduceBucket, k, chunk, round);
        if (at >= 0) Append(table_.actions[at]);
        if (reductions_.each_micro_batch) break;
      }
      if (!last || !FollowsReduction(k, chunk)) continue;
      Append(table_.actions[index_.Find(ActionKind::kUpdateBucket, k, chunk)]);
    }
  }

  const StepTable& table_;
  const ReductionOptions& reductions_;
  const GatherOptions& options_;
  const std::vector<Moment> moments_;
  const Turns turns_;
  const TableIndex index_;
  // Indexed by chunk: the action that ends its last backward, or -1.
  std::vector<int> ends_;
  // Indexed by chunk: buckets that the present backward is done with.
  std::vector<int> reduced_;
  StepTable made_;
};

}  // namespace

StepTable AddGathers(const StepTable& table, const ReductionOptions& reductions,
                     const GatherOptions& options) {
  return WithNeeds(Copier(table, reductions, options).Copy(), reductions);
}

namespace {

// Follows the turns of a table's buckets.
class TurnCheck {
 public:
  explicit TurnCheck(const StepTable& table) : table_(table) {
    for (const int buckets : table.bucket_counts()) {
      chunks_.emplace_back().buckets.resize(buckets);
    }
    for (const Action& action : table.actions) {
      if (action.kind != ActionKind::kGatherValues) continue;
      chunks_[action.chunk].gathers = true;
    }
  }

  absl::Status Check() {
    for (int i = 0; i < static_cast<int>(table_.actions.size()); ++i) {
      const Action& action = table_.actions[i];
      if (action.kind == ActionKind::kGatherValues) {
        TROUPE_RETURN_IF_ERROR(Gather(action));
      } else if (action.kind == ActionKind::kReleaseValues) {
        TROUPE_RETURN_IF_ERROR(Release(i, action));
      } else if (IsCompute(action.kind)) {
        TROUPE_RETURN_IF_ERROR(EndReader());
        if (ReadsValues(action.kind)) BeginReader(i, action);
      }
    }
    return EndReader();
  }

 private:
  struct Bucket {
    int gathered = 0, released = 0;  // turns
    int last_release = -1;           // position
    int read_by = -1;                // position of the last reader that has it
  };
  struct Chunk {
    std::vector<Bucket> buckets;
    bool gathers = false;
    int held = 0;  // buckets
  };

  absl::Status Wrong(const Action& action, absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: ", action.ToString(static_cast<int>(chunks_.size())), " ",
        what));
  }

  absl::Status Gather(const Action& action) {
    Chunk& chunk = chunks_[action.chunk];
    Bucket& bucket = chunk.buckets[action.index];
    if (action.round != bucket.gathered || bucket.released < bucket.gathered) {
      return Wrong(action,
                   "begins before the turn before it has ended; put the RL of "
                   "that before it");
    }
    ++bucket.gathered;
    ++chunk.held;
    // It was not held when the reader began.
    if (reader_ >= 0 && table_.actions[reader_].chunk == action.chunk &&
        bucket.last_release < reader_) {
      bucket.read_by = reader_;
      --missing_;
    }
    return absl::OkStatus();
  }

  absl::Status Release(int position, const Action& action) {
    Chunk& chunk = chunks_[action.chunk];
    Bucket& bucket = chunk.buckets[action.index];
    if (action.round != bucket.released || bucket.gathered == bucket.released) {
      return Wrong(action, "comes before its gather; put the GV before it");
    }
    ++bucket.released;
    --chunk.held;
    bucket.last_release = position;
    return absl::OkStatus();
  }

  void BeginReader(int position, const Action& action) {
    const Chunk& chunk = chunks_[action.chunk];
    if (!chunk.gathers) return;
    reader_ = position;
    missing_ = static_cast<int>(chunk.buckets.size()) - chunk.held;
  }

  absl::Status EndReader() {
    const int reader = std::exchange(reader_, -1);
    if (reader < 0 || missing_ == 0) return absl::OkStatus();
    const Action& action = table_.actions[reader];
    const std::vector<Bucket>& buckets = chunks_[action.chunk].buckets;
    const auto first =
        std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& bucket) {
          return bucket.released == bucket.gathered &&
                 bucket.last_release < reader && bucket.read_by != reader;
        });
    return Wrong(action, absl::StrCat("reads bucket ", first - buckets.begin(),
                                      ", which no GV gathers for it; add one, "
                                      "and an RL after its last use"));
  }

  const StepTable& table_;
  std::vector<Chunk> chunks_;
  int reader_ = -1;  // position of the reader under way
  int missing_ = 0;  // buckets that are still to be gathered for it
};

}  // namespace

absl::Status CheckTurns(const StepTable& table) {
  return TurnCheck(table).Check();
}

}  // namespace troupe::pipeline
