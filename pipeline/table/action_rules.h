// The properties of each kind of action, as one row of data. Tables are made,
// printed, checked, run, simulated and traced by these rows: a new kind of
// action needs a row here and a class that runs it (actors/engine).
//
//   const ActionRule& rule = RuleOf(ActionKind::kReduceBucket);
//   rule.word;                            // "AR"
//   rule.does;                            // "all-reduce of bucket"
//   rule.role;                            // ActionRole::kCollective
//   GroupOf(action);                      // GroupId::kDp
//   SignalAtEnd(action, index);           // kBucketReduced, of its bucket
//
// All functions take constant time, except add_needs, whose calls for all
// actions of a table take linear time together.

#ifndef PIPELINE_TABLE_ACTION_RULES_H_
#define PIPELINE_TABLE_ACTION_RULES_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "pipeline/group_id.h"
#include "pipeline/table/schedule.h"

namespace troupe::pipeline {

class TableIndex;

// How an action runs.
enum class ActionRole {
  kCompute,     // long, one at a time on the compute strand
  kReceive,     // ends when its message has arrived
  kSend,        // hands a message over, without waiting
  kCollective,  // starts in the order of its group, ends with its peers'
  kUpdate,      // short work of the compute strand
};

// Unit that an action's index counts.
enum class ActionScope { kStep, kMicroBatch, kBucket };

// Further traits, as bits.
enum ActionTrait : unsigned {
  kNoTrait = 0,
  kOfForward = 1,        // computes or carries activations
  kBeginsBackward = 2,   // begins the backward of a micro-batch
  kEndsBackward = 4,     // ends it: frees activations, completes gradients
  kMakesParameters = 8,  // writes the new values
  kOfGradients = 16,     // reduces or uses the gradients of its bucket
  kHasRounds = 32,       // may take several collectives, one after the other
  kHasTurns = 64,        // may come several times in a step
};

// Tables in which a kind may be, or an action needs a partner. A table with a
// backward trains; one without is an evaluation.
enum class InTables { kAll, kTraining, kEvaluation };

// Another action that must be in the table for the same index and chunk.
struct ActionPartner {
  // Kind of the partner; or the signal that it gives; or a trait that it has.
  // The giver of a signal that also makes parameters is no partner: it leaves
  // nothing to do with what it signals (RU).
  std::variant<ActionKind, SignalKind, ActionTrait> action;
  // Words of the error about the action if the table has no such partner.
  absl::string_view missing;
  InTables in = InTables::kAll;
};

// Positions that the needs of an action follow from: those of actions before it
// in the table.
struct TablePast {
  // Returns the position of the last one that computes with the parameters of
  // `chunk`; -1: there is none.
  int ReaderOf(int chunk) const {
    const bool any = chunk >= 0 && chunk < static_cast<int>(readers.size());
    return any ? readers[chunk] : -1;
  }
  void Add(const Action& action, int position);

  std::vector<int> readers;   // indexed by chunk
  std::vector<int> releases;  // RLs after the last GV
};

// Inputs that an action's needs are derived from.
struct NeedSources {
  const StepTable& table;
  const TableIndex& index;
  const ReductionOptions& options;
  const TablePast& past;
};

struct ActionRule {
  ActionKind kind;
  absl::string_view word;  // word in the text of a table
  // Words for people about what it does. The number of its micro-batch or
  // bucket is written behind them.
  absl::string_view does;
  // Name of the data that a collective reduces, for errors and reports; empty
  // for other kinds. The number of a bucket is written behind it.
  absl::string_view part;
  ActionRole role;
  ActionScope scope;
  InTables in;      // tables that may have it
  unsigned traits;  // bits of ActionTrait
  // Returns the group of a collective; kTied: that of the bucket's tie. Null
  // for other kinds.
  GroupId (*group)(const Action& action);
  // Signal that is raised besides kDone when the action, or the last of its
  // rounds, has ended, with the action's index and chunk.
  std::optional<SignalKind> gives;
  void (*add_needs)(const NeedSources& from, Action& action);
  absl::Span<const ActionPartner> partners;

  bool Has(ActionTrait trait) const { return (traits & trait) != 0; }
};

// Returns a limit on the round or turn of an action; 1 if it has none.
inline int RoundLimit(const ActionRule& rule) {
  return rule.Has(kHasTurns)    ? kActionIndexMax
         : rule.Has(kHasRounds) ? kRoundsMax
                                : 1;
}
const ActionRule& RuleOf(ActionKind kind);
// Returns all rows, in the order of ActionKind.
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
inline bool IsOfGradients(ActionKind kind) {
  return RuleOf(kind).Has(kOfGradients);
}
// Returns whether `kind` computes with the parameters of its chunk, so that
// their values must be there.
inline bool ReadsValues(ActionKind kind) {
  return IsCompute(kind) &&
         (RuleOf(kind).Has(kOfForward) || RuleOf(kind).Has(kBeginsBackward));
}
inline bool IsOfBucket(ActionKind kind) {
  return RuleOf(kind).scope == ActionScope::kBucket;
}
// Returns whether `kind` completes the sum of a bucket's gradients from which
// it is updated.
inline bool ReducesBucket(ActionKind kind) {
  return RuleOf(kind).gives == SignalKind::kBucketReduced;
}
// Returns whether `kind` is an update, or follows one: a gather of what was
// updated.
inline bool FollowsUpdates(ActionKind kind) {
  const ActionRule& rule = RuleOf(kind);
  return rule.role == ActionRole::kUpdate ||
         (rule.role == ActionRole::kCollective && rule.Has(kMakesParameters) &&
          !rule.Has(kOfGradients));
}
// Returns whether a table with backwards (`trains`), or one without, may have
// actions of the kind.
inline bool MayBeIn(ActionKind kind, bool trains) {
  return RuleOf(kind).in !=
         (trains ? InTables::kEvaluation : InTables::kTraining);
}
// Returns the group of a collective. `action` must be one.
GroupId GroupOf(const Action& action);

// Returns the position of the action after which the bucket has its new
// parameters, in the table of `index`; -1: it has none.
int MakerOf(const TableIndex& index, int bucket, int chunk);

// Returns the signal that the end of the action, with all of its rounds, raises
// besides kDone, if any.
inline std::optional<Signal> SignalOf(const Action& action) {
  const std::optional<SignalKind> gives = RuleOf(action.kind).gives;
  if (!gives.has_value()) return std::nullopt;
  return Signal{*gives, action.index, action.chunk};
}

// Returns whether the table of `index` has no later round of the action.
bool IsLastRound(const Action& action, const TableIndex& index);
// Returns the signal that the end of this action of the table raises: that of
// SignalOf() at the end of the last round, none before.
std::optional<Signal> SignalAtEnd(const Action& action,
                                  const TableIndex& index);

// Returns the name of the data that a collective reduces: "loss", "norms of
// gradients", "bucket 1", "tied bucket 1"; "bucket 1 of chunk 0" if the table
// has several chunks; "bucket 1, round 1" for a round after the first.
std::string PartOf(const Action& collective, int chunks);

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_ACTION_RULES_H_
