#include "pipeline/schedules/list_schedule.h"

#include <algorithm>
#include <cstdint>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/schedules/producer.h"
#include "pipeline/table/action_rules.h"

namespace troupe::pipeline {
namespace {

struct Ended {
  double time;
  std::int64_t number;
  int stage;
  ActionKind kind;
  int micro_batch;
  bool message;  // whether it is the arrival at another rank, not the end

  friend bool operator<(const Ended& a, const Ended& b) {
    return a.time != b.time ? a.time > b.time : a.number > b.number;
  }
};

// Progress of a stage; actions of each kind run in micro-batch order.
struct StageState {
  int forward_inputs = 0;   // activations that have arrived
  int forwards = 0;         // started
  int gradient_inputs = 0;  // gradients of outputs that have arrived
  int inputs = 0;           // I or B, started
  int inputs_done = 0;
  int weights = 0;  // W, or B, started
  int weights_done = 0;
};

struct RankState {
  std::vector<int> stages;  // indexed by chunk
  bool busy = false;
  double memory = 0;
  StepTable table;
};

class Player {
 public:
  explicit Player(const ListScheduleOptions& options)
      : options_(options),
        stages_(options.placement.size()),
        last_(static_cast<int>(options.placement.size()) - 1) {
    int pp = 0;
    for (const StagePlace& place : options.placement) {
      pp = std::max(pp, place.pp + 1);
    }
    ranks_.resize(pp);
    for (int rank = 0; rank < pp; ++rank) {
      ranks_[rank].stages = StagesAt(options.placement, rank);
    }
    stages_[0].forward_inputs = options.micro_batches;
  }

  absl::StatusOr<Tables> Play() {
    TROUPE_RETURN_IF_ERROR(CheckMemory());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      Choose(static_cast<int>(r), 0);
    }
    std::set<int> touched;
    while (!queue_.empty()) {
      const double now = queue_.top().time;
      while (!queue_.empty() && queue_.top().time == now) {
        const Ended ended = queue_.top();
        queue_.pop();
        touched.insert(Happen(ended));
      }
      if (!queue_.empty() && queue_.top().time == now) continue;
      for (const int r : touched) Choose(r, now);
      touched.clear();
    }
    Tables tables;
    for (RankState& rank : ranks_) {
      tables.push_back(WithNeeds(std::move(rank.table), {}));
    }
    return tables;
  }

 private:
  absl::Status CheckMemory() const {
    for (const RankState& rank : ranks_) {
      double needed = 0;
      for (const int stage : rank.stages) needed += ActivationOf(stage);
      if (needed <= options_.memory_limit) continue;
      return absl::ResourceExhaustedError(absl::StrCat(
          "schedule: a micro-batch takes ", needed,
          " of a rank's memory for activations, and the limit is ",
          options_.memory_limit, "; raise it, or make micro-batches smaller"));
    }
    return absl::OkStatus();
  }

  const StageCosts& CostsOf(int stage) const {
    return options_.costs.stages[stage];
  }
  double ActivationOf(int stage) const { return CostsOf(stage).activation; }
  int RankOf(int stage) const { return options_.placement[stage].pp; }

  // Records an event. Returns the rank that may now run more actions.
  int Happen(const Ended& ended) {
    StageState& stage = stages_[ended.stage];
    if (ended.message) {
      (ended.kind == ActionKind::kForward ? stage.forward_inputs
                                          : stage.gradient_inputs)++;
      return RankOf(ended.stage);
    }
    RankState& rank = ranks_[RankOf(ended.stage)];
    rank.busy = false;
    switch (ended.kind) {
      case ActionKind::kForward:
        if (ended.stage == last_) {
          ++stage.gradient_inputs;  // its own loss
        } else {
          Post(ended, ended.stage + 1);
        }
        break;
      case ActionKind::kBackwardWeights:
        break;
      default:
        ++stage.inputs_done;
        if (ended.stage > 0) Post(ended, ended.stage - 1);
    }
    if (EndsBackward(ended.kind)) {
      ++stage.weights_done;
      rank.memory -= ActivationOf(ended.stage);
    }
    return RankOf(ended.stage);
  }

  void Post(const Ended& ended, int to) {
    const bool near = RankOf(to) == RankOf(ended.stage);
    queue_.push({ended.time + (near ? 0 : options_.costs.transfer), ++number_,
                 to, ended.kind, ended.micro_batch, /*message=*/true});
  }

  void Begin(int stage, ActionKind kind, double now) {
    StageState& state = stages_[stage];
    RankState& rank = ranks_[RankOf(stage)];
    int m = 0;
    if (kind == ActionKind::kForward) {
      m = state.forwards++;
      rank.memory += ActivationOf(stage);
    } else if (kind == ActionKind::kBackwardWeights) {
      m = state.weights++;
    } else {
      m = state.inputs++;
      state.weights += kind == ActionKind::kBackward;
    }
    rank.busy = true;
    rank.table.actions.push_back(
        {kind, m, {}, options_.placement[stage].chunk});
    queue_.push({now + CostsOf(stage).TimeOf(kind), ++number_, stage, kind, m,
                 /*message=*/false});
  }

  bool MayGoBack(int stage) const {
    const StageState& state = stages_[stage];
    return state.inputs < state.gradient_inputs &&
           state.inputs < state.forwards;
  }

  // Returns whether the rank can hold this forward's activations, and those to
  // come of the oldest micro-batch that it has not finished.
  bool Fits(int stage) const {
    const RankState& rank = ranks_[RankOf(stage)];
    int oldest = options_.micro_batches;
    for (const int s : rank.stages) {
      oldest = std::min(oldest, stages_[s].weights_done);
    }
    double needed = rank.memory + ActivationOf(stage);
    const int m = stages_[stage].forwards;
    for (const int s : rank.stages) {
      const bool to_come = stages_[s].forwards <= oldest;
      if (to_come && !(s == stage && m == oldest)) needed += ActivationOf(s);
    }
    return needed <= options_.memory_limit;
  }

  // Returns the stage of the rank, the last chunk first, that may run this
  // action.
  int StageFor(const RankState& rank, ActionKind kind) const {
    for (auto stage = rank.stages.rbegin(); stage != rank.stages.rend();
         ++stage) {
      const StageState& state = stages_[*stage];
      switch (kind) {
        case ActionKind::kForward:
          if (state.forwards < state.forward_inputs && Fits(*stage)) {
            return *stage;
          }
          break;
        case ActionKind::kBackwardWeights:
          if (state.weights < state.inputs_done) return *stage;
          break;
        default:
          if (MayGoBack(*stage)) return *stage;
      }
    }
    return -1;
  }

  void Choose(int r, double now) {
    const RankState& rank = ranks_[r];
    if (rank.busy) return;
    const ActionKind backward =
        options_.splits ? ActionKind::kBackwardInputs : ActionKind::kBackward;
    std::vector<ActionKind> order = {backward, ActionKind::kForward};
    if (options_.forwards_first) std::swap(order[0], order[1]);
    if (options_.splits) {
      order.insert(options_.puts_weights_off ? order.end() : order.begin(),
                   ActionKind::kBackwardWeights);
    }
    for (const ActionKind kind : order) {
      const int stage = StageFor(rank, kind);
      if (stage < 0) continue;
      Begin(stage, kind, now);
      return;
    }
  }

  const ListScheduleOptions& options_;
  std::vector<StageState> stages_;
  const int last_;  // stage
  std::vector<RankState> ranks_;
  std::priority_queue<Ended> queue_;
  std::int64_t number_ = 0;
};

}  // namespace

absl::StatusOr<Tables> ListSchedule(const ListScheduleOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckProducer(
      static_cast<int>(options.placement.size()), options.micro_batches));
  if (options.costs.stages.size() != options.placement.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: costs of ", options.costs.stages.size(),
        " stages where the placement has ", options.placement.size()));
  }
  return Player(options).Play();
}

}  // namespace troupe::pipeline
