// What is true of every action of one kind, as data: one row for each kind.
// Tables are made, printed, checked, run, simulated and traced by these rows: a
// new kind of action is a row here and what it does (actors/engine).
//
//   const ActionRule& rule = RuleOf(ActionKind::kReduceBucket);
//   rule.word;                            // "AR"
//   rule.role;                            // ActionRole::kCollective
//   GroupOf(ActionKind::kReduceBucket);   // GroupId::kDp
//   SignalOf(action);                     // kBucketReduced, of its bucket
//
// All functions are constant in time, but for add_needs, whose sum over a table
// is linear.

#ifndef PIPELINE_ACTION_RULES_H_
#define PIPELINE_ACTION_RULES_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pipeline/group_id.h"
#include "pipeline/schedule.h"

namespace troupe::pipeline {

class TableIndex;

// How an action runs.
enum class ActionRole {
  kCompute,     // long, one at a time on the compute strand
  kReceive,     // ends when its message has come
  kSend,        // hands a message over, at once
  kCollective,  // starts in the order of its group, ends with its peers'
  kUpdate,      // short work of the compute strand
};

// What the number of an action counts.
enum class ActionScope { kStep, kMicroBatch, kBucket };

// Further traits, as bits.
enum ActionTrait : unsigned {
  kNoTrait = 0,
  kOfForward = 1,       // computes or carries activations
  kBeginsBackward = 2,  // of a micro-batch
  kEndsBackward = 4,    // of a micro-batch: activations go, gradients are there
  kMakesParameters = 8,  // writes the new values
};

// A kind that must be in the table for the same number and chunk, and what an
// error says of the action where it is not.
struct ActionPartner {
  ActionKind kind;
  absl::string_view missing;
};

// What an action's needs follow from.
struct NeedSources {
  const StepTable& table;
  const TableIndex& index;
  const ReductionOptions& options;
};

struct ActionRule {
  ActionKind kind;
  absl::string_view word;  // in the text of a table
  // What a collective is about, for errors and reports; empty for others. A
  // bucket's number follows.
  absl::string_view part;
  ActionRole role;
  ActionScope scope;
  unsigned traits;               // of ActionTrait
  std::optional<GroupId> group;  // of a collective; kTied stands for any tie
  // Given when it has ended, beside kDone; for its number and chunk.
  std::optional<SignalKind> gives;
  void (*add_needs)(const NeedSources& from, Action& action);
  absl::Span<const ActionPartner> partners;

  bool Has(ActionTrait trait) const { return (traits & trait) != 0; }
};

const ActionRule& RuleOf(ActionKind kind);
// All rows, in the order of ActionKind.
absl::Span<const ActionRule> ActionRules();

inline bool IsCompute(ActionKind kind) {
  return RuleOf(kind).role == ActionRole::kCompute;
}
inline bool IsReceive(ActionKind kind) {
  return RuleOf(kind).role == ActionRole::kReceive;
}
inline bool IsSend(ActionKind kind) {
  return RuleOf(kind).role == ActionRole::kSend;
}
inline bool IsCollective(ActionKind kind) {
  return RuleOf(kind).role == ActionRole::kCollective;
}
inline bool IsOfForward(ActionKind kind) {
  return RuleOf(kind).Has(kOfForward);
}
inline bool BeginsBackward(ActionKind kind) {
  return RuleOf(kind).Has(kBeginsBackward);
}
inline bool EndsBackward(ActionKind kind) {
  return RuleOf(kind).Has(kEndsBackward);
}
inline bool IsOfBucket(ActionKind kind) {
  return RuleOf(kind).scope == ActionScope::kBucket;
}
// Whether it gives the sum of a bucket that updates are made from.
inline bool ReducesBucket(ActionKind kind) {
  return RuleOf(kind).gives == SignalKind::kBucketReduced;
}
// The ranks that a collective pairs. `kind` is one.
GroupId GroupOf(ActionKind kind);

// What the end of the action gives beside kDone, if it gives anything.
inline std::optional<Signal> SignalOf(const Action& action) {
  const std::optional<SignalKind> gives = RuleOf(action.kind).gives;
  if (!gives.has_value()) return std::nullopt;
  return Signal{*gives, action.index, action.chunk};
}

// What a collective of a step is about: "loss", "norms of gradients", "bucket
// 1", "tied bucket 1"; "bucket 1 of chunk 0" where the table has several.
std::string PartOf(const Action& collective, int chunks);

}  // namespace troupe::pipeline

#endif  // PIPELINE_ACTION_RULES_H_
