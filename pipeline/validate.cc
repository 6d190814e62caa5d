// Validate(): can this table run to its end?

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nn/tensor/check.h"
#include "pipeline/schedule.h"
#include "pipeline/table_cursor.h"

namespace troupe::pipeline {
namespace {

absl::Status Bad(const Action& action, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("schedule: ", action.ToString(), " ", what));
}

// What must also be in the table for this action to make sense: either of two.
struct Pair {
  ActionKind kind;
  ActionKind partner, other_partner;
  absl::string_view missing;
};

constexpr Pair kPairs[] = {
    {ActionKind::kBackward, ActionKind::kForward, ActionKind::kForward,
     "has no forward"},
    {ActionKind::kBackwardInputs, ActionKind::kForward, ActionKind::kForward,
     "has no forward"},
    {ActionKind::kBackwardInputs, ActionKind::kBackwardWeights,
     ActionKind::kBackwardWeights, "has no weight gradients after it"},
    {ActionKind::kBackwardWeights, ActionKind::kBackwardInputs,
     ActionKind::kBackwardInputs, "has no input gradients before it"},
    {ActionKind::kSendActivation, ActionKind::kForward, ActionKind::kForward,
     "has no forward"},
    {ActionKind::kRecvActivation, ActionKind::kForward, ActionKind::kForward,
     "has no forward"},
    {ActionKind::kSendGradient, ActionKind::kBackward,
     ActionKind::kBackwardInputs, "has no backward"},
    {ActionKind::kRecvGradient, ActionKind::kBackward,
     ActionKind::kBackwardInputs, "has no backward"},
    {ActionKind::kReduceBucket, ActionKind::kUpdateBucket,
     ActionKind::kUpdateBucket, "has no update"},
    {ActionKind::kUpdateBucket, ActionKind::kReduceBucket,
     ActionKind::kReduceBucket, "has no reduction"},
};

bool Has(const StepTable& table, ActionKind kind, int index) {
  return table.Find(kind, index) >= 0;
}

bool Trains(const StepTable& table) {
  for (const Action& action : table.actions) {
    if (action.kind == ActionKind::kBackward ||
        action.kind == ActionKind::kBackwardInputs) {
      return true;
    }
  }
  return false;
}

// In an evaluation a gradient message is a bare credit (plan.cc).
bool IsCredit(const StepTable& table, const Action& action) {
  return (action.kind == ActionKind::kSendGradient ||
          action.kind == ActionKind::kRecvGradient) &&
         !Trains(table) && Has(table, ActionKind::kForward, action.index);
}

absl::Status CheckPairs(const StepTable& table) {
  std::set<std::pair<ActionKind, int>> seen;
  for (const Action& action : table.actions) {
    if (action.index < 0) return Bad(action, "has a number below 0");
    if (!seen.insert({action.kind, action.index}).second) {
      return Bad(action, "is there twice");
    }
    if (IsCredit(table, action)) continue;
    for (const Pair& pair : kPairs) {
      if (pair.kind == action.kind && !Has(table, pair.partner, action.index) &&
          !Has(table, pair.other_partner, action.index)) {
        return Bad(action, pair.missing);
      }
    }
  }
  return absl::OkStatus();
}

// Micro-batches are numbered without gaps; each has one backward, where any
// has (an evaluation has none).
absl::Status CheckMicroBatches(const StepTable& table) {
  const int count = table.micro_batches();
  const bool trains = Trains(table);
  for (int m = 0; m < count; ++m) {
    const int forward = table.Find(ActionKind::kForward, m);
    if (forward < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule: micro-batch ", m, " of ", count, " has no forward"));
    }
    const bool whole = Has(table, ActionKind::kBackward, m);
    const bool split = Has(table, ActionKind::kBackwardInputs, m);
    if (trains && !whole && !split) {
      return Bad(table.actions[forward], "has no backward");
    }
    if (whole && split) {
      return Bad(table.actions[forward], "has two backwards, whole and split");
    }
  }
  return absl::OkStatus();
}

// Every bucket is reduced, and needs name what the table has.
absl::Status CheckSignals(const StepTable& table) {
  const int buckets = table.buckets();
  for (int k = 0; k < buckets; ++k) {
    if (Has(table, ActionKind::kReduceBucket, k)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "schedule: bucket ", k, " of ", buckets, " is never reduced"));
  }
  const int actions = static_cast<int>(table.actions.size());
  for (const Action& action : table.actions) {
    for (const Signal& need : action.needs) {
      const bool of_bucket = need.kind == SignalKind::kBucketReady ||
                             need.kind == SignalKind::kBucketReleased ||
                             need.kind == SignalKind::kBucketReduced;
      const int count = need.kind == SignalKind::kDone ? actions
                        : of_bucket                    ? buckets
                                                       : 1;
      if (need.id < 0 || need.id >= count) {
        return Bad(action, "needs a signal that nothing gives");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const StepTable& table) {
  TROUPE_RETURN_IF_ERROR(CheckPairs(table));
  TROUPE_RETURN_IF_ERROR(CheckMicroBatches(table));
  TROUPE_RETURN_IF_ERROR(CheckSignals(table));
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
