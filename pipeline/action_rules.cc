#include "pipeline/action_rules.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "pipeline/table_index.h"

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

void NeedsOfUpdate(const NeedSources& from, Action& action) {
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
    {kBeginsBackward, "has no backward", PartnerIn::kTraining},
    {ActionKind::kForward, "has no forward", PartnerIn::kEvaluation}};
constexpr ActionPartner kOfReduction[] = {
    {ActionKind::kUpdateBucket, "has no update"}};
constexpr ActionPartner kOfUpdate[] = {
    {SignalKind::kBucketReduced, "has no reduction"}};

// --- The rows. ---

using Kind = ActionKind;
using Role = ActionRole;
using Scope = ActionScope;
constexpr std::nullopt_t kNone = std::nullopt;

// clang-format off
constexpr ActionRule kRules[kActionKinds] = {
    // kind, word, part, role, scope,
    //   traits, group, gives, needs, partners
    {Kind::kForward, "F", "", Role::kCompute, Scope::kMicroBatch,
     kOfForward, kNone, kNone, NeedsOfForward, {}},
    {Kind::kBackward, "B", "", Role::kCompute, Scope::kMicroBatch,
     kBeginsBackward | kEndsBackward, kNone, kNone, NeedsOfBackward,
     kForwardOnly},
    {Kind::kBackwardInputs, "I", "", Role::kCompute, Scope::kMicroBatch,
     kBeginsBackward, kNone, kNone, NeedsOfInputs, kOfInputs},
    {Kind::kBackwardWeights, "W", "", Role::kCompute, Scope::kMicroBatch,
     kEndsBackward, kNone, kNone, NeedsOfWeights, kOfWeights},
    {Kind::kRecvActivation, "RA", "", Role::kReceive, Scope::kMicroBatch,
     kOfForward, kNone, kNone, NeedsNothing, kForwardOnly},
    {Kind::kSendActivation, "SA", "", Role::kSend, Scope::kMicroBatch,
     kOfForward, kNone, kNone, NeedsOfSendActivation, kForwardOnly},
    {Kind::kRecvGradient, "RG", "", Role::kReceive, Scope::kMicroBatch,
     kNoTrait, kNone, kNone, NeedsNothing, kOfGradientTransfer},
    {Kind::kSendGradient, "SG", "", Role::kSend, Scope::kMicroBatch,
     kNoTrait, kNone, kNone, NeedsOfSendGradient, kOfGradientTransfer},
    {Kind::kReduceLoss, "LR", "loss", Role::kCollective, Scope::kStep,
     kNoTrait, GroupId::kWorld, SignalKind::kLossReduced, NeedsOfLoss, {}},
    {Kind::kReduceFindings, "NR", "norms of gradients", Role::kCollective,
     Scope::kStep,
     kNoTrait, GroupId::kWorld, kNone, NeedsOfFindings, {}},
    {Kind::kReduceTied, "TR", "tied bucket", Role::kCollective, Scope::kBucket,
     kOfGradients, GroupId::kTied, kNone, NeedsOfTied, {}},
    {Kind::kReduceBucket, "AR", "bucket", Role::kCollective, Scope::kBucket,
     kOfGradients | kHasRounds, GroupId::kDp, SignalKind::kBucketReduced,
     NeedsOfReduction, kOfReduction},
    {Kind::kUpdateBucket, "UP", "", Role::kUpdate, Scope::kBucket,
     kMakesParameters | kOfGradients, kNone, kNone, NeedsOfUpdate, kOfUpdate},
    {Kind::kReduceUpdateBucket, "RU", "bucket", Role::kCollective,
     Scope::kBucket,
     kMakesParameters | kOfGradients, GroupId::kDp, SignalKind::kBucketReduced,
     NeedsOfReduceUpdate, {}},
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

GroupId GroupOf(ActionKind kind) {
  const std::optional<GroupId> group = RuleOf(kind).group;
  TROUPE_CHECK(group.has_value(), "only a collective has a group");
  return *group;
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
      collective.round == 0 ? "" : absl::StrCat(", round ", collective.round));
}

}  // namespace troupe::pipeline
