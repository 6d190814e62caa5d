#include "pipeline/table/join_backwards.h"

#include <cstddef>
#include <utility>

namespace troupe::pipeline {

StepTable JoinBackwards(
    StepTable table, const std::function<bool(const Action& inputs)>& joins) {
  const std::vector<Action>& actions = table.actions;
  StepTable joined;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const Action& action = actions[i];
    const bool is_pair = i + 1 < actions.size() &&
                         action.kind == ActionKind::kBackwardInputs &&
                         actions[i + 1].kind == ActionKind::kBackwardWeights &&
                         actions[i + 1].index == action.index &&
                         actions[i + 1].chunk == action.chunk;
    if (is_pair && joins(action)) {
      joined.actions.push_back(
          {ActionKind::kBackward, action.index, {}, action.chunk});
      ++i;
    } else {
      joined.actions.push_back({action.kind, action.index, {}, action.chunk});
    }
  }
  return WithNeeds(std::move(joined), {});
}

}  // namespace troupe::pipeline
