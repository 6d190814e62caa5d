#include "pipeline/schedules/step_simulation.h"

#include <algorithm>
#include <cstdint>
#include <queue>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/schedules/critical_path.h"
#include "pipeline/table/action_rules.h"
#include "pipeline/table/activation_bound.h"
#include "pipeline/table/compute_order.h"
#include "pipeline/table/table_cursor.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

// An event at a rank: a compute action ends, or a message arrives.
struct Happening {
  double time;
  std::int64_t number;  // order of creation: the first goes first at one time
  int rank;
  int action;
  bool arrives;

  // Returns whether the event only says that the rank may begin.
  bool is_begin() const { return action < 0; }

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

bool HasTransfers(const StepTable& table) {
  return std::any_of(
      table.actions.begin(), table.actions.end(),
      [](const Action& a) { return IsSend(a.kind) || IsReceive(a.kind); });
}

// Returns the table as the engine runs it.
StepTable Ready(const StepTable& table, const std::vector<ChunkEnds>& ends,
                bool adds_transfers, Dispatch dispatch) {
  StepTable ready = adds_transfers ? AddTransfers(table, ends) : table;
  if (dispatch == Dispatch::kStrict) {
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
    const bool adds = std::none_of(tables.begin(), tables.end(), HasTransfers);
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
        queue_.push({begins_[r], ++number_, static_cast<int>(r), /*action=*/-1,
                     /*arrives=*/false});
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
  struct Rank {
    Rank(StepTable table, std::vector<int> at)
        : cursor(std::move(table)),
          index(cursor.table()),
          stages(std::move(at)),
          buckets(cursor.table().bucket_counts()),
          last(cursor.table().micro_batches() - 1),
          left(stages.size(), 0) {
      for (const Action& action : cursor.table().actions) {
        if (EndsBackward(action.kind)) ++left[action.chunk];
      }
    }

    TableCursor cursor;
    TableIndex index;
    std::vector<int> stages;   // indexed by chunk
    std::vector<int> buckets;  // indexed by chunk
    int last;                  // micro-batch
    std::vector<int> left;     // ends of backwards, by chunk
    int computing = -1;
    int alive = 0;
    double memory = 0;
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

  // Returns the memory that the activations of a micro-batch take.
  double BytesOf(const Rank& rank, const Action& action) const {
    const double bytes = costs_.stages[rank.stages[action.chunk]].activation;
    return action.index == rank.last ? bytes * costs_.last_micro_batch : bytes;
  }

  void Happen(const Happening& now) {
    if (now.is_begin()) return;
    if (now.arrives) {
      ranks_[now.rank].cursor.Finish(now.action);
    } else {
      Computed(now);
    }
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
    const double end = now + TimeOf(rank, action);
    record.actions.push_back(
        {r, {action.kind, action.index, {}, action.chunk}, now, end});
    record.busy += end - now;
    queue_.push({end, ++number_, r, id, /*arrives=*/false});
  }

  void Computed(const Happening& now) {
    Rank& rank = ranks_[now.rank];
    const Action& action = ActionOf(now.rank, now.action);
    rank.computing = -1;
    rank.cursor.Finish(now.action);
    if (!EndsBackward(action.kind)) return;
    --rank.alive;
    rank.memory -= BytesOf(rank, action);
    if (--rank.left[action.chunk] > 0) return;
    for (int k = 0; k < rank.buckets[action.chunk]; ++k) {
      rank.cursor.Give({SignalKind::kBucketReady, k, action.chunk});
      rank.cursor.Give({SignalKind::kBucketReleased, k, action.chunk});
    }
  }

  absl::Status Do(int r, int id, double now) {
    Rank& rank = ranks_[r];
    const Action& action = ActionOf(r, id);
    const ActionRule& rule = RuleOf(action.kind);
    if (rule.role == ActionRole::kCollective &&
        GroupOf(action) == GroupId::kWorld) {
      // It ends when all ranks have started it.
      rank.started |= BitOf(action.kind);
      return absl::OkStatus();
    }
    rank.cursor.Finish(id);
    if (rule.role == ActionRole::kSend) return Send(r, action, now);
    if (const auto given = SignalAtEnd(action, rank.index)) {
      rank.cursor.Give(*given);
    }
    return absl::OkStatus();
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
        const int id = rank.index.Find(rule.kind, 0);
        rank.cursor.Finish(id);
        if (const auto given =
                SignalAtEnd(rank.cursor.table().actions[id], rank.index)) {
          rank.cursor.Give(*given);
        }
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
    queue_.push({now + transfer, ++number_, place.pp, receive,
                 /*arrives=*/true});
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

bool IsTime(double value) { return value >= 0; }

absl::Status CheckCosts(const std::vector<StepTable>& tables,
                        const Placement& placement, const StepCosts& costs) {
  const int pp = static_cast<int>(tables.size());
  TROUPE_RETURN_IF_ERROR(CheckPlacement(placement, pp));
  if (costs.stages.size() != placement.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("schedule: costs of ", costs.stages.size(),
                     " stages where the placement has ", placement.size()));
  }
  for (const StageCosts& stage : costs.stages) {
    if (IsTime(stage.forward) && IsTime(stage.inputs) &&
        IsTime(stage.weights) && IsTime(stage.update) &&
        IsTime(costs.transfer)) {
      continue;
    }
    return absl::InvalidArgumentError(
        "schedule: a StepCosts has a cost that must be at least 0");
  }
  for (int rank = 0; rank < pp; ++rank) {
    const int chunks = static_cast<int>(StagesAt(placement, rank).size());
    if (tables[rank].chunks() <= chunks) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: the table of pp ", rank, " has ", tables[rank].chunks(),
        " chunks where the placement has ", chunks));
  }
  return absl::OkStatus();
}

}  // namespace

double StageCosts::TimeOf(ActionKind kind) const {
  switch (kind) {
    case ActionKind::kForward:
      return forward;
    case ActionKind::kBackward:
      return backward >= 0 ? backward : inputs + weights;
    case ActionKind::kBackwardInputs:
      return inputs;
    default:
      return weights;
  }
}

int SimulatedStep::activations_max() const {
  int most = 0;
  for (const SimulatedRank& r : ranks) most = std::max(most, r.activations_max);
  return most;
}

double SimulatedStep::memory_max() const {
  double most = 0;
  for (const SimulatedRank& r : ranks) most = std::max(most, r.memory_max);
  return most;
}

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
