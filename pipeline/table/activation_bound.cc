#include "pipeline/table/activation_bound.h"

#include <algorithm>
#include <vector>

#include "pipeline/table/action_rules.h"

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
  // The ends of backwards in table order, and for each chunk the last one that
  // a forward needs already: within a chunk they end in order.
  std::vector<int> ends;
  std::vector<int> waited(table.chunks(), -1);
  int forwards = 0;
  std::size_t freed = 0;  // number of `ends` looked at
  for (int id = 0; id < static_cast<int>(table.actions.size()); ++id) {
    Action& action = table.actions[id];
    if (EndsBackward(action.kind)) ends.push_back(id);
    if (action.kind != ActionKind::kForward) continue;
    // This forward exceeds the bound unless `needed` backwards have ended; as
    // many end before it in the table.
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
