#include "actors/engine/actions/actions.h"

#include <memory>

#include "actors/engine/actions/backward.h"
#include "actors/engine/actions/forward.h"
#include "actors/engine/actions/reduce_tied.h"
#include "actors/engine/actions/reductions.h"
#include "actors/engine/actions/send.h"
#include "actors/engine/actions/update.h"
#include "pipeline/table/action_rules.h"

namespace troupe::actors {
namespace {

using pipeline::ActionKind;

std::unique_ptr<StepAction> Make(ActionKind kind, const EngineParts& parts) {
  using Mode = Chunk::Mode;
  switch (kind) {
    case ActionKind::kForward:
      return std::make_unique<ForwardAction>(parts);
    case ActionKind::kBackward:
      return std::make_unique<BackwardAction>(parts, Mode::kWhole);
    case ActionKind::kBackwardInputs:
      return std::make_unique<BackwardAction>(parts, Mode::kInputs);
    case ActionKind::kBackwardWeights:
      return std::make_unique<BackwardAction>(parts, Mode::kWeights);
    case ActionKind::kRecvActivation:
    case ActionKind::kRecvGradient:
      return nullptr;  // ended by the Inbox
    case ActionKind::kSendActivation:
    case ActionKind::kSendGradient:
      return std::make_unique<SendAction>(parts);
    case ActionKind::kReduceTied:
      return std::make_unique<ReduceTiedAction>(parts);
    case ActionKind::kUpdateBucket:
      return std::make_unique<UpdateAction>(parts);
    case ActionKind::kReleaseValues:
      return std::make_unique<ReleaseAction>(parts);
    case ActionKind::kReduceLoss:
    case ActionKind::kReduceFindings:
    case ActionKind::kReduceBucket:
    case ActionKind::kReduceUpdateBucket:
    case ActionKind::kReduceNorms:
    case ActionKind::kGatherBucket:
    case ActionKind::kGatherValues:
      return MakeCollectiveAction(kind, parts);
  }
  return nullptr;
}

}  // namespace

StepActions MakeActions(const EngineParts& parts) {
  StepActions actions;
  for (const pipeline::ActionRule& rule : pipeline::ActionRules()) {
    actions.push_back(Make(rule.kind, parts));
  }
  return actions;
}

}  // namespace troupe::actors
