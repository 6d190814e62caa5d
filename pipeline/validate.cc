// Validate(): can this table run to its end?

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
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

bool Has(const StepTable& table, ActionKind kind, int index) {
  return table.Find(kind, index) >= 0;
}

bool HasBackward(const StepTable& table, int micro_batch) {
  return Has(table, ActionKind::kBackward, micro_batch) ||
         Has(table, ActionKind::kBackwardInputs, micro_batch);
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

// A gradient goes with a backward; in an evaluation, where it is a bare credit
// (plan.cc), with a forward.
absl::Status CheckGradientMessage(const StepTable& table,
                                  const Action& action) {
  if (Trains(table)) {
    return HasBackward(table, action.index) ? absl::OkStatus()
                                            : Bad(action, "has no backward");
  }
  return Has(table, ActionKind::kForward, action.index)
             ? absl::OkStatus()
             : Bad(action, "has no forward");
}

absl::Status CheckPairs(const StepTable& table) {
  std::set<std::pair<ActionKind, int>> seen;
  for (const Action& action : table.actions) {
    if (action.index < 0) return Bad(action, "has a number below 0");
    if (!seen.insert({action.kind, action.index}).second) {
      return Bad(action, "is there twice");
    }
    for (const Pair& pair : kPairs) {
      if (pair.kind == action.kind && !Has(table, pair.partner, action.index)) {
        return Bad(action, pair.missing);
      }
    }
    if (action.kind == ActionKind::kSendGradient ||
        action.kind == ActionKind::kRecvGradient) {
      TROUPE_RETURN_IF_ERROR(CheckGradientMessage(table, action));
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
    if (trains && !HasBackward(table, m)) {
      return Bad(table.actions[forward], "has no backward");
    }
    if (Has(table, ActionKind::kBackward, m) &&
        Has(table, ActionKind::kBackwardInputs, m)) {
      return Bad(table.actions[forward], "has two backwards, whole and split");
    }
  }
  return absl::OkStatus();
}

// Every bucket is reduced, and needs name what the table has.
absl::Status CheckSignals(const StepTable& table) {
  const int buckets = table.buckets();
  for (int k = 0; k < buckets; ++k) {
    const bool fused = Has(table, ActionKind::kReduceUpdateBucket, k);
    const bool reduced = Has(table, ActionKind::kReduceBucket, k);
    if (fused && reduced) {
      return absl::InvalidArgumentError(absl::StrCat(
          "schedule: bucket ", k, " is reduced twice, by AR and by RU"));
    }
    if (fused || reduced) continue;
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
      case ActionKind::kReduceUpdateBucket:
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
