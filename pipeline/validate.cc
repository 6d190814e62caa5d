// Validate(): can this table run to its end?

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipeline/schedule.h"
#include "pipeline/table_cursor.h"

namespace troupe::pipeline {
namespace {

absl::Status Bad(const Action& action, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("schedule: ", action.ToString(), " ", what));
}

// What must also be in the table for this action to make sense.
struct Pair {
  ActionKind kind;
  ActionKind partner;
  absl::string_view missing;
};

constexpr Pair kPairs[] = {
    {ActionKind::kBackward, ActionKind::kForward, "has no forward"},
    {ActionKind::kBackwardInputs, ActionKind::kForward, "has no forward"},
    {ActionKind::kBackwardInputs, ActionKind::kBackwardWeights,
     "has no weight gradients after it"},
    {ActionKind::kBackwardWeights, ActionKind::kBackwardInputs,
     "has no input gradients before it"},
    {ActionKind::kSendActivation, ActionKind::kForward, "has no forward"},
    {ActionKind::kRecvActivation, ActionKind::kForward, "has no forward"},
    {ActionKind::kReduceBucket, ActionKind::kUpdateBucket, "has no update"},
    {ActionKind::kUpdateBucket, ActionKind::kReduceBucket, "has no reduction"},
};

absl::Status CheckPairs(const StepTable& table) {
  std::set<std::pair<ActionKind, int>> seen;
  for (const Action& action : table.actions) {
    if (!seen.insert({action.kind, action.index}).second) {
      return Bad(action, "is there twice");
    }
    for (const Pair& pair : kPairs) {
      if (pair.kind == action.kind &&
          table.Find(pair.partner, action.index) < 0) {
        return Bad(action, pair.missing);
      }
    }
  }
  const int buckets = table.buckets();
  for (int k = 0; k < buckets; ++k) {
    if (table.Find(ActionKind::kReduceBucket, k) < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule: bucket ", k, " of ", buckets, " is never reduced"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const StepTable& table) {
  if (absl::Status status = CheckPairs(table); !status.ok()) return status;
  int weights_left = 0;  // actions that still write gradients
  for (const Action& action : table.actions) {
    weights_left += action.kind == ActionKind::kBackward ||
                    action.kind == ActionKind::kBackwardWeights;
  }
  TableCursor cursor(table);
  for (int i = 0; i < static_cast<int>(table.actions.size()); ++i) {
    if (IsReceive(table.actions[i].kind)) cursor.Finish(i);
  }
  for (int next; (next = cursor.NextRunnable(/*busy=*/false)) >= 0;) {
    const Action& action = table.actions[next];
    cursor.Start(next);
    cursor.Finish(next);
    switch (action.kind) {
      case ActionKind::kBackward:
      case ActionKind::kBackwardWeights:
        if (--weights_left > 0) break;
        for (int k = 0; k < table.buckets(); ++k) {
          cursor.Give({SignalKind::kBucketReady, k});
          cursor.Give({SignalKind::kBucketReleased, k});
        }
        break;
      case ActionKind::kReduceBucket:
        cursor.Give({SignalKind::kBucketReduced, action.index});
        break;
      case ActionKind::kReduceLoss:
        cursor.Give({SignalKind::kLossReduced, 0});
        break;
      default:
        break;
    }
  }
  if (cursor.complete()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "schedule: these actions can never run: ", cursor.Unfinished()));
}

}  // namespace troupe::pipeline
