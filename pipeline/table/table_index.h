// Finds the actions of a table by kind, index, chunk and round. A pass builds
// an index and does not keep it, since a table is plain data that others may
// edit.
//
//   const TableIndex index(table);
//   index.Find(ActionKind::kForward, /*index=*/3);              // or -1
//   index.Find(ActionKind::kForward, /*index=*/3, /*chunk=*/1);
//   index.Has(ActionKind::kReduceBucket, /*index=*/3, /*chunk=*/0,
//             /*round=*/1);
//
// Building it is linear in the table, Find constant. It does not see later
// changes of the table.

#ifndef PIPELINE_TABLE_TABLE_INDEX_H_
#define PIPELINE_TABLE_TABLE_INDEX_H_

#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

class TableIndex {
 public:
  explicit TableIndex(const StepTable& table) {
    places_.reserve(table.actions.size());
    for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
      const Action& action = table.actions[i];
      places_.emplace(
          Name(action.kind, action.index, action.chunk, action.round), i);
    }
  }

  // Returns the position of the first action with these values, or -1.
  int Find(ActionKind kind, int index, int chunk = 0, int round = 0) const {
    const auto found = places_.find(Name(kind, index, chunk, round));
    return found == places_.end() ? -1 : found->second;
  }
  bool Has(ActionKind kind, int index, int chunk = 0, int round = 0) const {
    return Find(kind, index, chunk, round) >= 0;
  }

 private:
  using Name = std::tuple<ActionKind, int, int, int>;

  absl::flat_hash_map<Name, int> places_;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_TABLE_INDEX_H_
