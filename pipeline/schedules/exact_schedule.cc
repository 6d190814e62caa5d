#include "pipeline/schedules/exact_schedule.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace troupe::pipeline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// An action that could be the next of its rank.
struct Candidate {
  int stage = 0;
  ActionKind kind = ActionKind::kForward;
  int micro_batch = 0;
  double begin = 0, end = 0;
};

// A partial step. Times of actions that are not placed yet are kNever.
struct Partial {
  // Indexed by stage and micro-batch.
  std::vector<std::vector<double>> forward_ends, input_ends;
  std::vector<int> forwards, inputs, weights;  // per stage
  std::vector<double> free_at, memory, left;   // per rank; left: work to come
  std::vector<std::vector<Candidate>> order;   // per rank
  double length = 0;
};

class Brancher {
 public:
  Brancher(const ListScheduleOptions& options, double shorter_than,
           std::int64_t nodes_max)
      : options_(options), best_(shorter_than), nodes_left_(nodes_max) {
    for (const StagePlace& place : options.placement) {
      ranks_ = std::max(ranks_, place.pp + 1);
    }
  }

  ExactSchedule Run() {
    Branch(Empty());
    ExactSchedule found;
    found.looked_at_all = nodes_left_ > 0;
    if (best_order_.empty()) return found;
    found.tables.emplace();
    for (const std::vector<Candidate>& rank : best_order_) {
      StepTable table;
      for (const Candidate& at : rank) {
        table.actions.push_back(
            {at.kind, at.micro_batch, {}, options_.placement[at.stage].chunk});
      }
      found.tables->push_back(WithNeeds(std::move(table), {}));
    }
    return found;
  }

 private:
  int stages() const { return static_cast<int>(options_.placement.size()); }
  int RankOf(int stage) const { return options_.placement[stage].pp; }
  double TransferTo(int from, int to) const {
    return RankOf(from) == RankOf(to) ? 0 : options_.costs.transfer;
  }
  Partial Empty() const {
    Partial p;
    const std::vector<double> never(options_.micro_batches, kNever);
    p.forward_ends.assign(stages(), never);
    p.input_ends.assign(stages(), never);
    p.forwards.assign(stages(), 0);
    p.inputs = p.weights = p.forwards;
    p.free_at.assign(ranks_, 0);
    p.memory = p.left = p.free_at;
    p.order.resize(ranks_);
    for (int stage = 0; stage < stages(); ++stage) {
      const StageCosts& costs = options_.costs.stages[stage];
      p.left[RankOf(stage)] += options_.micro_batches *
                               (costs.forward + costs.inputs + costs.weights);
    }
    return p;
  }

  // Returns the time at which the action's inputs have arrived.
  double InputAt(const Partial& p, int stage, ActionKind kind, int m) const {
    if (kind == ActionKind::kForward) {
      return stage == 0
                 ? 0
                 : p.forward_ends[stage - 1][m] + TransferTo(stage - 1, stage);
    }
    if (kind == ActionKind::kBackwardWeights) return p.input_ends[stage][m];
    const double own = p.forward_ends[stage][m];
    if (stage == stages() - 1) return own;
    return std::max(own,
                    p.input_ends[stage + 1][m] + TransferTo(stage + 1, stage));
  }

  void AddCandidate(const Partial& p, int stage, ActionKind kind, int m,
                    std::vector<Candidate>& to) const {
    if (m >= options_.micro_batches) return;
    const double input = InputAt(p, stage, kind, m);
    if (input == kNever) return;
    const int rank = RankOf(stage);
    if (kind == ActionKind::kForward &&
        p.memory[rank] + options_.costs.stages[stage].activation >
            options_.memory_limit) {
      return;
    }
    const double begin = std::max(input, p.free_at[rank]);
    to.push_back({stage, kind, m, begin,
                  begin + options_.costs.stages[stage].TimeOf(kind)});
  }

  std::vector<Candidate> Candidates(const Partial& p) const {
    std::vector<Candidate> candidates;
    const ActionKind backward =
        options_.splits ? ActionKind::kBackwardInputs : ActionKind::kBackward;
    for (int stage = 0; stage < stages(); ++stage) {
      AddCandidate(p, stage, ActionKind::kForward, p.forwards[stage],
                   candidates);
      AddCandidate(p, stage, backward, p.inputs[stage], candidates);
      if (options_.splits) {
        AddCandidate(p, stage, ActionKind::kBackwardWeights, p.weights[stage],
                     candidates);
      }
    }
    return candidates;
  }

  Partial With(const Partial& p, const Candidate& next) const {
    Partial with = p;
    const int rank = RankOf(next.stage);
    const double activation = options_.costs.stages[next.stage].activation;
    switch (next.kind) {
      case ActionKind::kForward:
        with.forward_ends[next.stage][next.micro_batch] = next.end;
        ++with.forwards[next.stage];
        with.memory[rank] += activation;
        break;
      case ActionKind::kBackwardWeights:
        ++with.weights[next.stage];
        with.memory[rank] -= activation;
        break;
      default:
        with.input_ends[next.stage][next.micro_batch] = next.end;
        ++with.inputs[next.stage];
        if (next.kind == ActionKind::kBackward) {
          ++with.weights[next.stage];
          with.memory[rank] -= activation;
        }
    }
    with.free_at[rank] = next.end;
    with.left[rank] -= next.end - next.begin;
    with.length = std::max(with.length, next.end);
    with.order[rank].push_back(next);
    return with;
  }

  // Returns a lower bound on the steps that complete this one.
  double LeastLength(const Partial& p) const {
    double least = p.length;
    for (int rank = 0; rank < ranks_; ++rank) {
      least = std::max(least, p.free_at[rank] + p.left[rank]);
    }
    return least;
  }

  void Branch(const Partial& p) {
    if (nodes_left_ <= 0) return;
    --nodes_left_;
    // Sums of times are rounded: a smaller difference is no gain.
    if (LeastLength(p) >= best_ * (1 - 1e-9)) return;
    std::vector<Candidate> candidates = Candidates(p);
    if (candidates.empty()) {
      if (!IsComplete(p)) return;  // no memory will become free
      best_ = p.length;
      best_order_ = p.order;
      return;
    }
    // Branches on the rank that can end an action first: its next action is one
    // that begins before that end.
    const auto first = std::min_element(
        candidates.begin(), candidates.end(),
        [](const Candidate& a, const Candidate& b) { return a.end < b.end; });
    const int rank = RankOf(first->stage);
    const double begin = first->begin, end = first->end;
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.begin < b.begin;
                     });
    for (const Candidate& next : candidates) {
      if (RankOf(next.stage) == rank &&
          (next.begin < end || next.begin == begin)) {
        Branch(With(p, next));
      }
    }
  }

  bool IsComplete(const Partial& p) const {
    return std::all_of(p.weights.begin(), p.weights.end(), [&](int done) {
      return done == options_.micro_batches;
    });
  }

  const ListScheduleOptions& options_;
  double best_;
  std::int64_t nodes_left_;
  int ranks_ = 0;
  std::vector<std::vector<Candidate>> best_order_;
};

}  // namespace

ExactSchedule FindExactSchedule(const ListScheduleOptions& options,
                                double shorter_than, std::int64_t nodes_max) {
  return Brancher(options, shorter_than, nodes_max).Run();
}

}  // namespace troupe::pipeline
