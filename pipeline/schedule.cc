#include "pipeline/schedule.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace troupe::pipeline {
namespace {

// Of a micro-batch or a bucket in a table's text.
constexpr int kIndexMax = 1 << 20;

struct KindName {
  ActionKind kind;
  absl::string_view name;
};

// Longer names first, so that parsing "SA0" does not see another kind.
constexpr KindName kKindNames[] = {
    {ActionKind::kRecvActivation, "RA"},
    {ActionKind::kSendActivation, "SA"},
    {ActionKind::kRecvGradient, "RG"},
    {ActionKind::kSendGradient, "SG"},
    {ActionKind::kReduceLoss, "LR"},
    {ActionKind::kReduceBucket, "AR"},
    {ActionKind::kUpdateBucket, "UP"},
    {ActionKind::kReduceUpdateBucket, "RU"},
    {ActionKind::kForward, "F"},
    {ActionKind::kBackward, "B"},
    {ActionKind::kBackwardInputs, "I"},
    {ActionKind::kBackwardWeights, "W"},
};

absl::string_view NameOf(ActionKind kind) {
  for (const KindName& row : kKindNames) {
    if (row.kind == kind) return row.name;
  }
  return "?";
}

bool HasIndex(ActionKind kind) { return kind != ActionKind::kReduceLoss; }

bool IsBackward(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInputs;
}

void Append(StepTable& table, ActionKind kind, int index) {
  table.actions.push_back({kind, index, {}});
}

// Adds the need "action (kind, index) is done" where the table has it.
void NeedDone(const StepTable& table, ActionKind kind, int index,
              Action& action) {
  const int found = table.Find(kind, index);
  if (found >= 0) action.needs.push_back({SignalKind::kDone, found});
}

void NeedComputed(const StepTable& table, Action& action) {
  const int m = action.index;
  switch (action.kind) {
    case ActionKind::kForward:
      NeedDone(table, ActionKind::kRecvActivation, m, action);
      break;
    case ActionKind::kBackward:
      NeedDone(table, ActionKind::kForward, m, action);
      NeedDone(table, ActionKind::kRecvGradient, m, action);
      NeedDone(table, ActionKind::kBackwardWeights, m - 1, action);
      break;
    case ActionKind::kBackwardInputs:
      NeedDone(table, ActionKind::kForward, m, action);
      NeedDone(table, ActionKind::kRecvGradient, m, action);
      NeedDone(table, ActionKind::kBackward, m - 1, action);
      break;
    case ActionKind::kBackwardWeights:
      NeedDone(table, ActionKind::kBackwardInputs, m, action);
      NeedDone(table, ActionKind::kBackward, m - 1, action);
      break;
    case ActionKind::kSendActivation:
      NeedDone(table, ActionKind::kForward, m, action);
      return;
    case ActionKind::kSendGradient:
      NeedDone(table, ActionKind::kBackward, m, action);
      NeedDone(table, ActionKind::kBackwardInputs, m, action);
      return;
    default:
      return;
  }
  // Backwards and weight gradients of a chunk keep micro-batch order, whole
  // ones among split ones too.
  NeedDone(table, action.kind, m - 1, action);
}

void NeedReduced(const StepTable& table, const ReductionOptions& options,
                 Action& action) {
  switch (action.kind) {
    case ActionKind::kReduceLoss:
      for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
        if (table.actions[i].kind == ActionKind::kForward) {
          action.needs.push_back({SignalKind::kDone, i});
        }
      }
      break;
    case ActionKind::kReduceBucket:
      action.needs.push_back({SignalKind::kBucketReady, action.index});
      break;
    case ActionKind::kReduceUpdateBucket:
      action.needs.push_back({SignalKind::kBucketReady, action.index});
      action.needs.push_back({SignalKind::kBucketReleased, action.index});
      action.needs.push_back({SignalKind::kLossReduced, 0});
      break;
    case ActionKind::kUpdateBucket:
      action.needs.push_back({SignalKind::kBucketReduced, action.index});
      action.needs.push_back({SignalKind::kBucketReleased, action.index});
      action.needs.push_back({SignalKind::kLossReduced, 0});
      if (options.update_needs_all_buckets) {
        action.needs.push_back({SignalKind::kAllReduced, 0});
      }
      break;
    default:
      break;
  }
}

}  // namespace

std::string Action::ToString() const {
  return HasIndex(kind) ? absl::StrCat(NameOf(kind), index)
                        : std::string(NameOf(kind));
}

int StepTable::micro_batches() const {
  int count = 0;
  for (const Action& action : actions) {
    count += action.kind == ActionKind::kForward;
  }
  return count;
}

int StepTable::buckets() const {
  int count = 0;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kReduceBucket ||
        action.kind == ActionKind::kUpdateBucket ||
        action.kind == ActionKind::kReduceUpdateBucket) {
      count = std::max(count, action.index + 1);
    }
  }
  return count;
}

std::string StepTable::ToString() const {
  return absl::StrJoin(actions, " ", [](std::string* out, const Action& a) {
    absl::StrAppend(out, a.ToString());
  });
}

int StepTable::Find(ActionKind kind, int index) const {
  for (int i = 0; i < static_cast<int>(actions.size()); ++i) {
    if (actions[i].kind == kind && actions[i].index == index) return i;
  }
  return -1;
}

StepTable DataParallelTable(int micro_batches) {
  StepTable table;
  for (int m = 0; m < micro_batches; ++m) {
    Append(table, ActionKind::kForward, m);
    Append(table, ActionKind::kBackward, m);
  }
  return WithNeeds(std::move(table), {});
}

StepTable GPipeTable(int micro_batches) {
  StepTable table;
  for (int m = 0; m < micro_batches; ++m) {
    Append(table, ActionKind::kForward, m);
  }
  for (int m = 0; m < micro_batches; ++m) {
    Append(table, ActionKind::kBackward, m);
  }
  return WithNeeds(std::move(table), {});
}

StepTable AddTransfers(const StepTable& compute, bool first_stage,
                       bool last_stage) {
  StepTable table;
  for (const Action& action : compute.actions) {
    const int m = action.index;
    const bool forward = action.kind == ActionKind::kForward;
    const bool backward = IsBackward(action.kind);
    if (forward && !first_stage) Append(table, ActionKind::kRecvActivation, m);
    if (backward && !last_stage) Append(table, ActionKind::kRecvGradient, m);
    Append(table, action.kind, m);
    if (forward && !last_stage) Append(table, ActionKind::kSendActivation, m);
    if (backward && !first_stage) Append(table, ActionKind::kSendGradient, m);
  }
  return WithNeeds(std::move(table), {});
}

StepTable AddReductions(const StepTable& table, int buckets,
                        const ReductionOptions& options) {
  // After the last forward and its send: nobody waits for the loss first.
  int last_forward = -1;
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    const ActionKind kind = table.actions[i].kind;
    if (kind == ActionKind::kForward || kind == ActionKind::kSendActivation) {
      last_forward = i;
    }
  }
  StepTable reduced;
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    Append(reduced, table.actions[i].kind, table.actions[i].index);
    if (i == last_forward) Append(reduced, ActionKind::kReduceLoss, 0);
  }
  for (int k = 0; k < buckets; ++k) {
    if (options.fuse_updates) {
      Append(reduced, ActionKind::kReduceUpdateBucket, k);
      continue;
    }
    Append(reduced, ActionKind::kReduceBucket, k);
    Append(reduced, ActionKind::kUpdateBucket, k);
  }
  return WithNeeds(std::move(reduced), options);
}

StepTable WithNeeds(StepTable table, const ReductionOptions& options) {
  for (Action& action : table.actions) {
    action.needs.clear();
    NeedComputed(table, action);
    NeedReduced(table, options, action);
  }
  return table;
}

absl::StatusOr<StepTable> ParseTable(absl::string_view text,
                                     const ReductionOptions& options) {
  StepTable table;
  for (absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \n\t"), absl::SkipEmpty())) {
    bool known = false;
    for (const KindName& row : kKindNames) {
      int index = 0;
      absl::string_view rest = word;
      if (rest.substr(0, row.name.size()) != row.name) continue;
      rest.remove_prefix(row.name.size());
      known = HasIndex(row.kind) ? absl::SimpleAtoi(rest, &index) &&
                                       index >= 0 && index <= kIndexMax
                                 : rest.empty();
      if (!known) continue;
      Append(table, row.kind, index);
      break;
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", word, "\" is no action; write F0, B0, AR0, ..."));
    }
  }
  return WithNeeds(std::move(table), options);
}

std::string ToGrid(const std::vector<StepTable>& tables) {
  std::string grid;
  for (std::size_t rank = 0; rank < tables.size(); ++rank) {
    absl::StrAppend(&grid, "rank ", rank, ": ", tables[rank].ToString(), "\n");
  }
  return grid;
}

}  // namespace troupe::pipeline
