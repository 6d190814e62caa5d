#include "pipeline/table/action_rules.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table/table_index.h"

namespace troupe::pipeline {
namespace {

// --- Needs. Each is of the action's own chunk. ---

// Needs the end of action (kind, index), if the table has it.
void NeedDone(const NeedSources& from, ActionKind kind, int index,
              Action& action) {
  const int found = from.index.Find(kind, index, action.chunk);
  if (found >= 0) action.needs.push_back({SignalKind::kDone, found});
}

// Needs a signal of the action's own bucket.
void NeedBucket(SignalKind kind, Action& action) {
  action.needs.push_back({kind, action.index, action.chunk});
}

void NeedLoss(Action& action) {
  action.needs.push_back({SignalKind::kLossReduced, 0});
}

// Forwards, backwards and weight gradients of a chunk run in the order of
// micro-batches.
void NeedBefore(const NeedSources& from, Action& action) {
  NeedDone(from, action.kind, action.index - 1, action);
}

void NeedsOfForward(const NeedSources& from, Action& action) {
  NeedDone(from, ActionKind::kRecvActivation, action.index, action);
  NeedBefore(from, action);
}

void NeedsOfBackward(const NeedSources& from, Action& action) {
  NeedDone(from, ActionKind::kForward, action.index, action);
  NeedDone(from, ActionKind::kRecvGradient, action.index, action);
  // Whole backwards keep their order among split ones, too.
  NeedDone(from, ActionKind::kBackwardWeights, action.index - 1, action);
  NeedBefore(from, action);
}

void NeedsOfInputs(const NeedSources& from, Action& action) {
  NeedDone(from, ActionKind::kForward, action.index, action);
  NeedDone(from, ActionKind::kRecvGradient, action.index, action);
  NeedDone(from, ActionKind::kBackward, action.index - 1, action);
  NeedBefore(from, action);
}

void NeedsOfWeights(const NeedSources& from, Action& action) {
  NeedDone(from, ActionKind::kBackwardInputs, action.index, action);
  NeedDone(from, ActionKind::kBackward, action.index - 1, action);
  NeedBefore(from, action);
}

void NeedsOfSendActivation(const NeedSources& from, Action& action) {
  NeedDone(from, ActionKind::kForward, action.index, action);
}

void NeedsOfSendGradient(const NeedSources& from, Action& action) {
  NeedDone(from, ActionKind::kBackward, action.index, action);
  NeedDone(from, ActionKind::kBackwardInputs, action.index, action);
}

// A receive needs no signal: it waits for its message alone.
void NeedsNothing(const NeedSources&, Action&) {}

// Returns whether the action is the first of its kind: a second one, which
// Validate() rejects, would make WithNeeds() quadratic.
bool IsFirst(const NeedSources& from, const Action& action) {
  const int first = from.index.Find(action.kind, 0);
  return first >= 0 && &from.table.actions[first] == &action;
}

void NeedsOfLoss(const NeedSources& from, Action& action) {
  if (!IsFirst(from, action)) return;
  for (int i = 0; i < static_cast<int>(from.table.actions.size()); ++i) {
    if (from.table.actions[i].kind != ActionKind::kForward) continue;
    action.needs.push_back({SignalKind::kDone, i});
  }
}

void NeedsOfFindings(const NeedSources& from, Action& action) {
  if (!IsFirst(from, action)) return;
  NeedLoss(action);
  // Without buckets no action signals that all are reduced.
  if (from.table.buckets() > 0) {
    action.needs.push_back({SignalKind::kAllReduced, 0});
  }
  // Until a loop's program asks for updates it may change the gradients.
  if (from.options.updates_on_request) {
    action.needs.push_back({SignalKind::kStepAsked, 0});
  }
}

void NeedsOfTied(const NeedSources&, Action& action) {
  NeedBucket(SignalKind::kBucketReady, action);
}

// A bucket is summed over the replicas when its gradients are complete, and
// summed over the stages that share it. Each round follows the one before.
void NeedsOfReduction(const NeedSources& from, Action& action) {
  if (action.round > 0) {
    const int before = from.index.Find(action.kind, action.index, action.chunk,
                                       action.round - 1);
    if (before >= 0) action.needs.push_back({SignalKind::kDone, before});
    if (from.options.each_micro_batch) {
      action.needs.push_back(
          {SignalKind::kBucketReady, action.index, action.chunk, action.round});
    }
    return;
  }
  const int tied =
      from.index.Find(ActionKind::kReduceTied, action.index, action.chunk);
  if (tied >= 0) {
    action.needs.push_back({SignalKind::kDone, tied});
  } else {
    NeedBucket(SignalKind::kBucketReady, action);
  }
}

void NeedsOfReduceUpdate(const NeedSources& from, Action& action) {
  NeedsOfReduction(from, action);
  NeedBucket(SignalKind::kBucketReleased, action);
  NeedLoss(action);
}

void NeedsOfNorms(const NeedSources& from, Action& action) {
  NeedBucket(SignalKind::kBucketReduced, action);
  NeedBucket(SignalKind::kBucketReleased, action);
  const bool asked = from.options.updates_on_request;
  if (asked) action.needs.push_back({SignalKind::kStepAsked, 0});
  // A loop without LR has the means of each rank's loss: nothing divides them.
  if (!asked || from.index.Has(ActionKind::kReduceLoss, 0)) NeedLoss(action);
  if (from.options.update_needs_all_buckets) {
    action.needs.push_back({SignalKind::kAllReduced, 0});
  }
  const int findings = from.index.Find(ActionKind::kReduceFindings, 0);
  if (findings >= 0) action.needs.push_back({SignalKind::kDone, findings});
}

void NeedsOfUpdate(const NeedSources& from, Action& action) {
  NeedsOfNorms(from, action);
  NeedDone(from, ActionKind::kReduceNorms, action.index, action);
}

void NeedsOfGather(const NeedSources& from, Action& action) {
  NeedDone(from, ActionKind::kUpdateBucket, action.index, action);
}

// A gather waits for all releases before it in the table: they free its memory.
// The collectives of a group start in table order, so those before the gather
// before it need not be named again.
void NeedsOfGatherValues(const NeedSources& from, Action& action) {
  for (const int release : from.past.releases) {
    action.needs.push_back({SignalKind::kDone, release});
  }
}

// A release follows its gather, and the last action before it that computes
// with its chunk. (The engine may do it in the course of that action.)
void NeedsOfRelease(const NeedSources& from, Action& action) {
  const int gather = from.index.Find(ActionKind::kGatherValues, action.index,
                                     action.chunk, action.round);
  if (gather >= 0) action.needs.push_back({SignalKind::kDone, gather});
  const int reader = from.past.ReaderOf(action.chunk);
  if (reader >= 0) action.needs.push_back({SignalKind::kDone, reader});
}

// --- Partners. ---

constexpr ActionPartner kForwardOnly[] = {
    {ActionKind::kForward, "has no forward"}};
constexpr ActionPartner kOfInputs[] = {
    {ActionKind::kForward, "has no forward"},
    {ActionKind::kBackwardWeights, "has no weight gradients after it"}};
constexpr ActionPartner kOfWeights[] = {
    {ActionKind::kBackwardInputs, "has no input gradients before it"}};
// A gradient transfer belongs to a backward; in an evaluation, where it is a
// mere credit (plan.cc), to a forward.
constexpr ActionPartner kOfGradientTransfer[] = {
    {kBeginsBackward, "has no backward", InTables::kTraining},
    {ActionKind::kForward, "has no forward", InTables::kEvaluation}};
constexpr ActionPartner kOfReduction[] = {
    {ActionKind::kUpdateBucket, "has no update"}};
constexpr ActionPartner kOfNorms[] = {
    {ActionKind::kUpdateBucket, "has no update after it"}};
constexpr ActionPartner kOfGather[] = {
    {ActionKind::kUpdateBucket, "has no update before it"}};
constexpr ActionPartner kOfGatherValues[] = {
    {ActionKind::kReleaseValues, "has no release after it"}};
constexpr ActionPartner kOfRelease[] = {
    {ActionKind::kGatherValues, "has no gather before it"}};
constexpr ActionPartner kOfUpdate[] = {
    {SignalKind::kBucketReduced, "has no reduction"}};

// --- Groups. ---

template <GroupId group>
GroupId Always(const Action&) {
  return group;
}

// --- The rows. ---

using Kind = ActionKind;
using Role = ActionRole;
using Scope = ActionScope;
using Tables = InTables;
constexpr std::nullopt_t kNone = std::nullopt;
constexpr auto kDpPpGroup = Always<GroupId::kDpPp>;
constexpr auto kTpDpPpGroup = Always<GroupId::kTpDpPp>;
constexpr auto kDpGroup = Always<GroupId::kDp>;
constexpr auto kTieGroup = Always<GroupId::kTied>;

// clang-format off
constexpr ActionRule kRules[kActionKinds] = {
    // kind, word, what it does, part,
    //   role, scope, in, traits, group,
    //   gives, needs, partners
    {Kind::kForward, "F", "forward", "",
     Role::kCompute, Scope::kMicroBatch, Tables::kAll, kOfForward, nullptr,
     kNone, NeedsOfForward, {}},
    {Kind::kBackward, "B", "backward", "",
     Role::kCompute, Scope::kMicroBatch, Tables::kTraining,
     kBeginsBackward | kEndsBackward, nullptr,
     kNone, NeedsOfBackward, kForwardOnly},
    {Kind::kBackwardInputs, "I", "gradients of inputs", "",
     Role::kCompute, Scope::kMicroBatch, Tables::kTraining,
     kBeginsBackward, nullptr,
     kNone, NeedsOfInputs, kOfInputs},
    {Kind::kBackwardWeights, "W", "gradients of weights", "",
     Role::kCompute, Scope::kMicroBatch, Tables::kTraining,
     kEndsBackward, nullptr,
     kNone, NeedsOfWeights, kOfWeights},
    {Kind::kRecvActivation, "RA", "takes an activation", "",
     Role::kReceive, Scope::kMicroBatch, Tables::kAll, kOfForward, nullptr,
     kNone, NeedsNothing, kForwardOnly},
    {Kind::kSendActivation, "SA", "hands an activation over", "",
     Role::kSend, Scope::kMicroBatch, Tables::kAll, kOfForward, nullptr,
     kNone, NeedsOfSendActivation, kForwardOnly},
    {Kind::kRecvGradient, "RG", "takes a gradient", "",
     Role::kReceive, Scope::kMicroBatch, Tables::kAll, kNoTrait, nullptr,
     kNone, NeedsNothing, kOfGradientTransfer},
    {Kind::kSendGradient, "SG", "hands a gradient over", "",
     Role::kSend, Scope::kMicroBatch, Tables::kAll, kNoTrait, nullptr,
     kNone, NeedsOfSendGradient, kOfGradientTransfer},
    {Kind::kReduceLoss, "LR", "all-reduce of the loss", "loss",
     Role::kCollective, Scope::kStep, Tables::kTraining, kNoTrait, kDpPpGroup,
     SignalKind::kLossReduced, NeedsOfLoss, {}},
    {Kind::kReduceFindings, "NR", "all-reduce of the gradients' norm",
     "norms of gradients",
     Role::kCollective, Scope::kStep, Tables::kTraining, kNoTrait, kTpDpPpGroup,
     kNone, NeedsOfFindings, {}},
    {Kind::kReduceTied, "TR", "all-reduce over stages of bucket", "tied bucket",
     Role::kCollective, Scope::kBucket, Tables::kTraining,
     kOfGradients, kTieGroup,
     kNone, NeedsOfTied, {}},
    {Kind::kReduceBucket, "AR", "all-reduce of bucket", "bucket",
     Role::kCollective, Scope::kBucket, Tables::kTraining,
     kOfGradients | kHasRounds, kDpGroup,
     SignalKind::kBucketReduced, NeedsOfReduction, kOfReduction},
    {Kind::kUpdateBucket, "UP", "update of bucket", "",
     Role::kUpdate, Scope::kBucket, Tables::kTraining,
     kMakesParameters | kOfGradients, nullptr,
     kNone, NeedsOfUpdate, kOfUpdate},
    {Kind::kReduceUpdateBucket, "RU", "all-reduce and update of bucket",
     "bucket",
     Role::kCollective, Scope::kBucket, Tables::kTraining,
     kMakesParameters | kOfGradients, kDpGroup,
     SignalKind::kBucketReduced, NeedsOfReduceUpdate, {}},
    {Kind::kReduceNorms, "PN", "all-reduce of the parameters' norms of bucket",
     "norms of bucket",
     Role::kCollective, Scope::kBucket, Tables::kTraining,
     kOfGradients, kDpGroup,
     kNone, NeedsOfNorms, kOfNorms},
    {Kind::kGatherBucket, "AG", "all-gather of bucket", "values of bucket",
     Role::kCollective, Scope::kBucket, Tables::kTraining,
     kMakesParameters, kDpGroup,
     kNone, NeedsOfGather, kOfGather},
    {Kind::kGatherValues, "GV", "gather before uses of bucket",
     "values of bucket",
     Role::kCollective, Scope::kBucket, Tables::kAll, kHasTurns, kDpGroup,
     kNone, NeedsOfGatherValues, kOfGatherValues},
    {Kind::kReleaseValues, "RL", "release of bucket", "",
     Role::kUpdate, Scope::kBucket, Tables::kAll, kHasTurns, nullptr,
     kNone, NeedsOfRelease, kOfRelease},
};
// clang-format on

constexpr bool RowsStandInOrder() {
  int number = 0;
  for (const ActionRule& rule : kRules) {
    if (static_cast<int>(rule.kind) != number++) return false;
  }
  return true;
}
static_assert(RowsStandInOrder(), "one row for each kind, in their order");

}  // namespace

const ActionRule& RuleOf(ActionKind kind) {
  return kRules[static_cast<int>(kind)];
}

absl::Span<const ActionRule> ActionRules() { return kRules; }

GroupId GroupOf(const Action& action) {
  const ActionRule& rule = RuleOf(action.kind);
  TROUPE_CHECK(rule.group != nullptr, "only a collective has a group");
  return rule.group(action);
}

void TablePast::Add(const Action& action, int position) {
  if (ReadsValues(action.kind) && action.chunk >= 0 &&
      action.chunk < kChunksMax) {
    readers.resize(
        std::max(readers.size(), static_cast<std::size_t>(action.chunk) + 1),
        -1);
    readers[action.chunk] = position;
  }
  if (action.kind == ActionKind::kGatherValues) releases.clear();
  if (action.kind == ActionKind::kReleaseValues) releases.push_back(position);
}

int MakerOf(const TableIndex& index, int bucket, int chunk) {
  int maker = -1;
  for (const ActionRule& rule : kRules) {
    if (!rule.Has(kMakesParameters)) continue;
    maker = std::max(maker, index.Find(rule.kind, bucket, chunk));
  }
  return maker;
}

bool IsLastRound(const Action& action, const TableIndex& index) {
  return !RuleOf(action.kind).Has(kHasRounds) ||
         !index.Has(action.kind, action.index, action.chunk, action.round + 1);
}

std::optional<Signal> SignalAtEnd(const Action& action,
                                  const TableIndex& index) {
  return IsLastRound(action, index) ? SignalOf(action) : std::nullopt;
}

std::string PartOf(const Action& collective, int chunks) {
  const ActionRule& rule = RuleOf(collective.kind);
  if (rule.scope == ActionScope::kStep) return std::string(rule.part);
  return absl::StrCat(
      rule.part, " ", collective.index,
      chunks == 1 ? "" : absl::StrCat(" of chunk ", collective.chunk),
      collective.round == 0
          ? ""
          : absl::StrCat(rule.Has(kHasTurns) ? ", turn " : ", round ",
                         collective.round));
}

}  // namespace troupe::pipeline
