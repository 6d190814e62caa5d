#include "pipeline/activation_bound.h"

#include <algorithm>
#include <vector>

#include "pipeline/action_rules.h"

namespace troupe::pipeline {

int MostActivations(const StepTable& table) {
  int now = 0, most = 0;
  for (const Action& action : table.actions) {
    if (action.kind == ActionKind::kForward) {
      most = std::max(most, ++now);
    } else if (EndsBackward(action.kind)) {
      --now;
    }
  }
  return most;
}

void BoundActivations(StepTable& table) {
  const int most = MostActivations(table);
  // The ends of backwards in the table's order, and of each chunk the last that
  // a forward was told to wait for: within a chunk they keep their order.
  std::vector<int> ends;
  std::vector<int> waited(table.chunks(), -1);
  int forwards = 0;
  std::size_t freed = 0;  // of `ends`: looked at
  for (int id = 0; id < static_cast<int>(table.actions.size()); ++id) {
    Action& action = table.actions[id];
    if (EndsBackward(action.kind)) ends.push_back(id);
    if (action.kind != ActionKind::kForward) continue;
    // With this one there are as many forwards as may be alive, and more: so
    // many backwards have ended before it in the table.
    const int needed = ++forwards - most;
    for (; static_cast<int>(freed) < needed; ++freed) {
      waited[table.actions[ends[freed]].chunk] = ends[freed];
    }
    if (needed <= 0) continue;
    for (int end : waited) {
      if (end >= 0) action.needs.push_back({SignalKind::kDone, end});
    }
  }
}

}  // namespace troupe::pipeline
