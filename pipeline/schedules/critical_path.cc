#include "pipeline/schedules/critical_path.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

#include "pipeline/table/action_rules.h"

namespace troupe::pipeline {
namespace {

class PathFinder {
 public:
  PathFinder(const SimulatedStep& step, const Placement& placement)
      : step_(step), placement_(placement) {
    for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
      stages_.push_back(StagesAt(placement, static_cast<int>(rank)));
      records_.emplace_back();
      const std::vector<SimulatedAction>& actions = step.ranks[rank].actions;
      for (std::size_t i = 0; i < actions.size(); ++i) {
        records_.back()[KeyOf(actions[i].action)] = static_cast<int>(i);
      }
    }
  }

  std::vector<SimulatedAction> Find() const {
    std::vector<SimulatedAction> path;
    for (Place at = Last(); at.rank >= 0; at = Before(at)) {
      path.push_back(RecordAt(at));
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  using Key = std::tuple<ActionKind, int, int>;

  // An action of a rank, by its number among the rank's; rank < 0: none.
  struct Place {
    int rank = -1;
    int record = -1;
  };

  static Key KeyOf(const Action& action) {
    return {action.kind, action.index, action.chunk};
  }

  const SimulatedAction& RecordAt(const Place& at) const {
    return step_.ranks[at.rank].actions[at.record];
  }

  // Returns the action that ends last, the lowest rank's of several.
  Place Last() const {
    Place last;
    for (std::size_t r = 0; r < step_.ranks.size(); ++r) {
      const std::vector<SimulatedAction>& actions = step_.ranks[r].actions;
      if (actions.empty()) continue;
      if (last.rank >= 0 && actions.back().end <= RecordAt(last).end) continue;
      last = {static_cast<int>(r), static_cast<int>(actions.size()) - 1};
    }
    return last;
  }

  Place Before(const Place& at) const {
    const double begin = RecordAt(at).begin;
    const Place same_rank = {at.rank, at.record - 1};
    const bool waits = at.record == 0 || RecordAt(same_rank).end < begin;
    if (waits) {
      const Place input = InputOf(RecordAt(at));
      if (input.rank >= 0) return input;
    }
    return at.record > 0 ? same_rank : Place();
  }

  // Returns the action on another rank whose output a compute action needs.
  Place InputOf(const SimulatedAction& at) const {
    const int stage = stages_[at.rank][at.action.chunk];
    const bool forward = at.action.kind == ActionKind::kForward;
    const int from = stage + (forward ? -1 : 1);
    if (at.action.kind == ActionKind::kBackwardWeights || from < 0 ||
        from >= static_cast<int>(placement_.size())) {
      return {};
    }
    const StagePlace& place = placement_[from];
    for (const ActionKind kind :
         forward ? std::vector<ActionKind>{ActionKind::kForward}
                 : std::vector<ActionKind>{ActionKind::kBackward,
                                           ActionKind::kBackwardInputs}) {
      const auto found =
          records_[place.pp].find({kind, at.action.index, place.chunk});
      if (found != records_[place.pp].end()) return {place.pp, found->second};
    }
    return {};
  }

  const SimulatedStep& step_;
  const Placement& placement_;
  std::vector<std::vector<int>> stages_;     // indexed by rank and chunk
  std::vector<std::map<Key, int>> records_;  // indexed by rank
};

}  // namespace

std::vector<SimulatedAction> CriticalPath(const SimulatedStep& step,
                                          const Placement& placement) {
  return PathFinder(step, placement).Find();
}

}  // namespace troupe::pipeline
