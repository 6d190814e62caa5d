#include "pipeline/table/compute_order.h"

#include <algorithm>

#include "pipeline/table/action_rules.h"

namespace troupe::pipeline {

void KeepComputeOrder(StepTable& table) {
  int previous = -1;
  for (int id = 0; id < static_cast<int>(table.actions.size()); ++id) {
    Action& action = table.actions[id];
    if (!IsCompute(action.kind)) continue;
    if (previous >= 0) {
      const Signal need = {SignalKind::kDone, previous};
      auto& needs = action.needs;
      if (std::find(needs.begin(), needs.end(), need) == needs.end()) {
        needs.push_back(need);
      }
    }
    previous = id;
  }
}

}  // namespace troupe::pipeline
