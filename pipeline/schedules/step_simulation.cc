#include "pipeline/schedules/step_simulation.h"

#include <algorithm>
#include <cstdint>
#include <queue>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/schedules/critical_path.h"
#include "pipeline/schedules/read_parts.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/activation_bound.h"
#include "pipeline/table/compute_order.h"
#include "pipeline/table/table_cursor.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

// An event at a rank.
struct Happening {
  enum class What {
    kMayBegin,     // the rank is free for the step
    kComputed,     // a compute action, or one of its parts, has ended
    kArrived,      // the message of a receive is there
    kReduced,      // a reduction or gather has ended
    kBucketReady,  // gradients of a bucket are complete, within a backward
  };

  double time;
  std::int64_t number;  // order of creation: the first goes first at one time
  int rank;
  What what;
  int action = -1;
  int bucket = -1;

  // Orders a queue so that its top is the earliest event.
  friend bool operator<(const Happening& a, const Happening& b) {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
  }
};

// A collective of all ranks, as a bit.
std::uint32_t BitOf(ActionKind kind) {
  static_assert(kActionKinds <= 32, "each kind has a bit");
  return std::uint32_t{1} << static_cast<int>(kind);
}

template <typename Has>
bool HasAny(const StepTable& table, const Has& has) {
  return std::any_of(table.actions.begin(), table.actions.end(),
                     [&](const Action& action) { return has(action.kind); });
}

bool GathersBucket(ActionKind kind) {
  return kind == ActionKind::kGatherBucket || kind == ActionKind::kGatherValues;
}

bool HasTransfers(const StepTable& table) {
  return HasAny(table, IsSend) || HasAny(table, IsReceive);
}

// Returns the table as the engine runs it.
StepTable Ready(const StepTable& table, const std::vector<ChunkEnds>& ends,
                bool adds_transfers, Dispatch dispatch) {
  StepTable ready = adds_transfers ? AddTransfers(table, ends) : table;
  const bool gathers = HasAny(
      table, [](ActionKind kind) { return kind == ActionKind::kGatherValues; });
  if (dispatch == Dispatch::kStrict || gathers) {
    KeepComputeOrder(ready);
  } else {
    BoundActivations(ready);
  }
  return ready;
}

class Simulator {
 public:
  Simulator(const std::vector<StepTable>& tables, const Placement& placement,
            const StepCosts& costs, Dispatch dispatch,
            std::vector<double> begins)
      : placement_(placement), costs_(costs), begins_(std::move(begins)) {
    const bool adds = placement.size() > 1 &&
                      std::none_of(tables.begin(), tables.end(), HasTransfers);
    for (int rank = 0; rank < static_cast<int>(tables.size()); ++rank) {
      ranks_.emplace_back(
          Ready(tables[rank], EndsAt(placement, rank), adds, dispatch),
          StagesAt(placement, rank));
    }
    step_.ranks.resize(ranks_.size());
  }

  absl::StatusOr<SimulatedStep> Run() {
    std::set<int> touched;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      touched.insert(static_cast<int>(r));
      if (begins_[r] > 0) {
        queue_.push(
            {begins_[r], ++number_, static_cast<int>(r), What::kMayBegin});
      }
    }
    double now = 0;
    while (true) {
      while (!queue_.empty() && queue_.top().time == now) {
        const Happening happening = queue_.top();
        queue_.pop();
        touched.insert(happening.rank);
        Happen(happening);
      }
      for (const int r : touched) {
        TROUPE_RETURN_IF_ERROR(DoWhatTakesNoTime(r, now));
      }
      if (TellCollectives()) {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
          touched.insert(static_cast<int>(r));
        }
        continue;
      }
      // Messages that arrive at the same time count for the choice.
      if (!queue_.empty() && queue_.top().time == now) continue;
      for (const int r : touched) ComputeNext(r, now);
      touched.clear();
      if (queue_.empty()) break;
      now = queue_.top().time;
    }
    TROUPE_RETURN_IF_ERROR(CheckComplete());
    Conclude();
    return std::move(step_);
  }

 private:
  using What = Happening::What;

  struct Rank {
    Rank(StepTable table, std::vector<int> at)
        : cursor(std::move(table)),
          index(cursor.table()),
          stages(std::move(at)),
          buckets(cursor.table().bucket_counts()),
          parts(ReadPartsOf(cursor.table())),
          last(cursor.table().micro_batches() - 1) {}

    TableCursor cursor;
    TableIndex index;
    std::vector<int> stages;   // indexed by chunk
    std::vector<int> buckets;  // indexed by chunk
    // Indexed by action; empty for those that run as a whole.
    std::vector<std::vector<ReadPart>> parts;
    int last;  // micro-batch
    int computing = -1;
    std::size_t part = 0;     // the present one of that action
    double part_seconds = 0;  // time of each part
    int awaited = -1;         // gather that the part waits for
    int alive = 0;
    double memory = 0;
    double reduces_until = 0;  // time
    // Collectives of all ranks that it has started, as bits.
    std::uint32_t started = 0;
  };

  const Action& ActionOf(int rank, int id) const {
    return ranks_[rank].cursor.table().actions[id];
  }

  double TimeOf(const Rank& rank, const Action& action) const {
    const int stage = rank.stages[action.chunk];
    double time = costs_.stages[stage].TimeOf(action.kind);
    if (action.index == rank.last) time *= costs_.last_micro_batch;
    return costs_.factor ? time * costs_.factor(stage, action) : time;
  }

  double SumsOf(const Rank& rank, const Action& action) const {
    const double time =
        costs_.stages[rank.stages[action.chunk]].SumsOf(action.kind);
    return action.index == rank.last ? time * costs_.last_micro_batch : time;
  }

  // Returns the memory that the activations of a micro-batch take.
  double BytesOf(const Rank& rank, const Action& action) const {
    const double bytes = costs_.stages[rank.stages[action.chunk]].activation;
    return action.index == rank.last ? bytes * costs_.last_micro_batch : bytes;
  }

  void Happen(const Happening& now) {
    switch (now.what) {
      case What::kMayBegin:
        return;
      case What::kComputed:
        return Computed(now);
      case What::kArrived:
        return ranks_[now.rank].cursor.Finish(now.action);
      case What::kReduced:
        return EndCollective(ranks_[now.rank], now.action);
      case What::kBucketReady:
        return CompleteBucket(ranks_[now.rank], now.bucket,
                              ActionOf(now.rank, now.action));
    }
  }

  void EndCollective(Rank& rank, int id) {
    rank.cursor.Finish(id);
    const Action& action = rank.cursor.table().actions[id];
    if (const auto given = SignalAtEnd(action, rank.index)) {
      rank.cursor.Give(*given);
    }
  }

  static void CompleteBucket(Rank& rank, int bucket, const Action& backward) {
    rank.cursor.GiveGradients(bucket, backward.chunk, backward.index,
                              backward.index == rank.last);
  }

  // Returns the times of a chunk's reductions; empty: they take none.
  const std::vector<double>& ReductionsOf(const Rank& rank, int chunk) const {
    return costs_.stages[rank.stages[chunk]].reductions;
  }

  // Returns the times of an action on each bucket of its chunk; empty: it takes
  // none.
  const std::vector<double>& BucketTimesOf(const Rank& rank,
                                           const Action& action) const {
    static const auto* const kNone = new std::vector<double>();
    if (ReducesBucket(action.kind)) return ReductionsOf(rank, action.chunk);
    if (!GathersBucket(action.kind)) return *kNone;
    return costs_.stages[rank.stages[action.chunk]].gathers;
  }

  absl::Status DoWhatTakesNoTime(int r, double now) {
    TableCursor& cursor = ranks_[r].cursor;
    for (int id; (id = cursor.NextRunnable(/*busy=*/true)) >= 0;) {
      cursor.Start(id);
      TROUPE_RETURN_IF_ERROR(Do(r, id, now));
    }
    return absl::OkStatus();
  }

  void ComputeNext(int r, double now) {
    Rank& rank = ranks_[r];
    if (rank.awaited >= 0) BeginPart(r, now);
    if (rank.computing >= 0 || now < begins_[r]) return;
    const int id = rank.cursor.NextRunnable(/*busy=*/false);
    if (id < 0) return;
    rank.cursor.Start(id);
    Compute(r, id, now);
  }

  void Compute(int r, int id, double now) {
    Rank& rank = ranks_[r];
    SimulatedRank& record = step_.ranks[r];
    const Action& action = ActionOf(r, id);
    rank.computing = id;
    if (action.kind == ActionKind::kForward) {
      rank.memory += BytesOf(rank, action);
      record.activations_max = std::max(record.activations_max, ++rank.alive);
      record.memory_max = std::max(record.memory_max, rank.memory);
    }
    const double computed = TimeOf(rank, action);
    const double end = now + computed + SumsOf(rank, action);
    record.actions.push_back(
        {r, {action.kind, action.index, {}, action.chunk}, now, end});
    record.busy += computed;
    rank.part = 0;
    if (!rank.parts[id].empty()) {
      rank.part_seconds =
          (end - now) / static_cast<double>(rank.parts[id].size());
      BeginPart(r, now);
      return;
    }
    if (EndsBackward(action.kind)) {
      const auto buckets =
          static_cast<int>(ReductionsOf(rank, action.chunk).size());
      for (int k = 0; k < buckets; ++k) {
        queue_.push({now + (end - now) * (k + 1) / buckets, ++number_, r,
                     What::kBucketReady, id, k});
      }
    }
    queue_.push({end, ++number_, r, What::kComputed, id});
  }

  // Begins the present part of a rank's action, once its values are there.
  void BeginPart(int r, double now) {
    Rank& rank = ranks_[r];
    const int gather = rank.parts[rank.computing][rank.part].gather;
    rank.awaited = rank.cursor.Given({SignalKind::kDone, gather}) ? -1 : gather;
    if (rank.awaited >= 0) return;
    queue_.push({now + rank.part_seconds, ++number_, r, What::kComputed,
                 rank.computing});
  }

  // Ends the present part. Returns whether it was the last one.
  bool EndPart(const Happening& now) {
    Rank& rank = ranks_[now.rank];
    const ReadPart& part = rank.parts[now.action][rank.part];
    const Action& action = ActionOf(now.rank, now.action);
    if (EndsBackward(action.kind)) CompleteBucket(rank, part.bucket, action);
    if (part.release >= 0) rank.cursor.Finish(part.release);
    if (++rank.part < rank.parts[now.action].size()) {
      BeginPart(now.rank, now.time);
      return false;
    }
    step_.ranks[now.rank].actions.back().end = now.time;
    return true;
  }

  void Computed(const Happening& now) {
    Rank& rank = ranks_[now.rank];
    const Action& action = ActionOf(now.rank, now.action);
    const bool in_parts = !rank.parts[now.action].empty();
    if (in_parts && !EndPart(now)) return;
    rank.computing = -1;
    rank.cursor.Finish(now.action);
    if (!EndsBackward(action.kind)) return;
    --rank.alive;
    rank.memory -= BytesOf(rank, action);
    // Buckets whose reductions take time were ready in the course of it.
    if (in_parts || !ReductionsOf(rank, action.chunk).empty()) return;
    for (int k = 0; k < rank.buckets[action.chunk]; ++k) {
      CompleteBucket(rank, k, action);
    }
  }

  absl::Status Do(int r, int id, double now) {
    Rank& rank = ranks_[r];
    const Action& action = ActionOf(r, id);
    const ActionRule& rule = RuleOf(action.kind);
    if (rule.role == ActionRole::kCollective &&
        rule.scope == ActionScope::kStep) {
      // It ends when all ranks have started it.
      rank.started |= BitOf(action.kind);
      return absl::OkStatus();
    }
    if (!BucketTimesOf(rank, action).empty()) {
      Reduce(r, id, now);
      return absl::OkStatus();
    }
    if (rule.role == ActionRole::kSend) {
      rank.cursor.Finish(id);
      return Send(r, action, now);
    }
    EndCollective(rank, id);
    return absl::OkStatus();
  }

  // Starts the reduction or gather of a bucket behind the rank's earlier ones.
  void Reduce(int r, int id, double now) {
    Rank& rank = ranks_[r];
    const Action& action = ActionOf(r, id);
    rank.reduces_until = std::max(rank.reduces_until, now) +
                         BucketTimesOf(rank, action)[action.index];
    step_.ranks[r].reduced = rank.reduces_until;
    queue_.push({rank.reduces_until, ++number_, r, What::kReduced, id});
  }

  // Ends the collectives that all ranks have started. Returns whether there
  // were any.
  bool TellCollectives() {
    std::uint32_t started = ~std::uint32_t{0};
    for (const Rank& rank : ranks_) started &= rank.started;
    if (started == 0) return false;
    for (Rank& rank : ranks_) {
      rank.started &= ~started;
      for (const ActionRule& rule : ActionRules()) {
        if ((started & BitOf(rule.kind)) == 0) continue;
        EndCollective(rank, rank.index.Find(rule.kind, 0));
      }
    }
    return true;
  }

  absl::Status Send(int r, const Action& action, double now) {
    const bool forward = IsOfForward(action.kind);
    const int to = ranks_[r].stages[action.chunk] + (forward ? 1 : -1);
    if (to < 0 || to >= static_cast<int>(placement_.size())) {
      return Wrong(r, action, "has no stage to send to; remove it");
    }
    const StagePlace& place = placement_[to];
    const int receive = ranks_[place.pp].index.Find(
        forward ? ActionKind::kRecvActivation : ActionKind::kRecvGradient,
        action.index, place.chunk);
    if (receive < 0) {
      return Wrong(r, action,
                   "is received by nobody; add the receive to the other rank");
    }
    const double transfer = place.pp == r ? 0 : costs_.transfer;
    queue_.push({now + transfer, ++number_, place.pp, What::kArrived, receive});
    return absl::OkStatus();
  }

  absl::Status Wrong(int r, const Action& action, const char* what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: rank ", r, ": ",
        action.ToString(ranks_[r].cursor.table().chunks()), " ", what));
  }

  absl::Status CheckComplete() const {
    std::string left;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const TableCursor& cursor = ranks_[r].cursor;
      if (cursor.complete()) continue;
      absl::StrAppend(&left, left.empty() ? "" : "; ", "rank ", r, " has left ",
                      cursor.Unfinished());
    }
    if (left.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: the tables do not end: ", left,
                     "; move or add what they wait for"));
  }

  void Conclude() {
    double busy = 0;
    for (const SimulatedRank& rank : step_.ranks) {
      busy += rank.busy;
      if (rank.actions.empty()) continue;
      step_.seconds = std::max(step_.seconds, rank.actions.back().end);
    }
    if (step_.seconds > 0) {
      step_.bubble =
          1 - busy / (step_.seconds * static_cast<double>(ranks_.size()));
    }
    step_.critical_path = CriticalPath(step_, placement_);
  }

  const Placement placement_;
  const StepCosts costs_;
  const std::vector<double> begins_;  // per rank: when it may compute
  std::vector<Rank> ranks_;
  std::priority_queue<Happening> queue_;
  std::int64_t number_ = 0;
  SimulatedStep step_;
};

}  // namespace

absl::StatusOr<SimulatedStep> SimulateStep(const std::vector<StepTable>& tables,
                                           const Placement& placement,
                                           const StepCosts& costs,
                                           Dispatch dispatch,
                                           std::vector<double> begins) {
  TROUPE_RETURN_IF_ERROR(CheckCosts(tables, placement, costs));
  begins.resize(tables.size(), 0);
  return Simulator(tables, placement, costs, dispatch, std::move(begins)).Run();
}

}  // namespace troupe::pipeline
