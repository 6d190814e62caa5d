#include "pipeline/schedules/read_parts.h"

#include <algorithm>

#include "pipeline/table/action_rules.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

// Returns the position of the next compute action after `reader`.
int EndOf(const StepTable& table, int reader) {
  const auto& actions = table.actions;
  const auto next =
      std::find_if(actions.begin() + reader + 1, actions.end(),
                   [](const Action& action) { return IsCompute(action.kind); });
  return static_cast<int>(next - actions.begin());
}

}  // namespace

std::vector<std::vector<ReadPart>> ReadPartsOf(const StepTable& table) {
  const TableIndex index(table);
  // Indexed by chunk and bucket: the number of its turns that have ended.
  std::vector<std::vector<int>> turns;
  for (const int buckets : table.bucket_counts()) turns.emplace_back(buckets);
  std::vector<std::vector<ReadPart>> parts(table.actions.size());
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    const Action& action = table.actions[i];
    if (action.kind == ActionKind::kReleaseValues) {
      ++turns[action.chunk][action.index];
    }
    if (!ReadsValues(action.kind)) continue;
    const int end = EndOf(table, i);
    const std::vector<int>& ended = turns[action.chunk];
    for (int k = 0; k < static_cast<int>(ended.size()); ++k) {
      const int gather =
          index.Find(ActionKind::kGatherValues, k, action.chunk, ended[k]);
      if (gather < 0) continue;
      const int release =
          index.Find(ActionKind::kReleaseValues, k, action.chunk, ended[k]);
      parts[i].push_back({k, gather, release < end ? release : -1});
    }
    if (IsOfForward(action.kind)) {
      std::reverse(parts[i].begin(), parts[i].end());
    }
  }
  return parts;
}

}  // namespace troupe::pipeline
