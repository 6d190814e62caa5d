#include "actors/engine/loop/loop_dispatcher.h"

#include <utility>

#include "actors/engine/actions/actions.h"
#include "actors/engine/loop/hook_action.h"
#include "base/check.h"
#include "nn/ops/loss.h"
#include "pipeline/parameter_plan.h"

namespace troupe::actors {

absl::StatusOr<std::unique_ptr<LoopDispatcher>> LoopDispatcher::Create(
    const Options& options, OwnedParts& parts) {
  std::unique_ptr<LoopDispatcher> made(new LoopDispatcher(options, parts));
  TROUPE_RETURN_IF_ERROR(made->Init());
  return made;
}

absl::Status LoopDispatcher::Init() {
  const ChunkParameters& parameters = *parts_->parameters[0];
  const nn::Optimizer* const optimizer = parameters.optimizer();
  const nn::Queue queue = parts_->events.update_queue();
  if (optimizer != nullptr && optimizer->MaySkipSteps()) {
    TROUPE_ASSIGN_OR_RETURN(
        scaler_,
        LossScaler::Create(parts_->kernels(),
                           {/*initial=*/1, nn::LossScaleRule::Fixed(), queue}));
  }
  // An average is divided already.
  const nn::ops::LossReduction reduction = options_.exact_mean
                                               ? nn::ops::LossReduction::kMean
                                               : nn::ops::LossReduction::kSum;
  TROUPE_ASSIGN_OR_RETURN(
      StepLosses losses,
      StepLosses::Create(parts_->kernels(),
                         {/*stop_on_nan=*/false, /*loss_scale=*/1, queue,
                          scaler_.get(), reduction},
                         /*overlap=*/false));
  losses_.emplace(std::move(losses));
  StepActions actions = MakeActions(*parts_);
  if (options_.hook != nullptr) {
    actions[static_cast<int>(pipeline::ActionKind::kReduceBucket)] =
        std::make_unique<HookAction>(*parts_, options_.hook);
  }
  if (!options_.tables.has_value()) {
    options_.tables =
        Dispatcher::Options{Table(), {}, {parameters.num_buckets()}};
  }
  dispatcher_.emplace(*options_.tables, *parts_, std::move(actions),
                      parts_.inbox(), *losses_, parts_.trace());
  return absl::OkStatus();
}

pipeline::StepTable LoopDispatcher::Table() const {
  const ChunkParameters& parameters = *parts_->parameters[0];
  pipeline::LoopTableOptions table;
  table.updates = parameters.optimizer() != nullptr;
  table.reduce_loss = options_.exact_mean;
  table.update_needs_all_buckets = parts_->setup.plan->update_needs_all_buckets;
  table.order = options_.order;
  return pipeline::LoopTable(parameters.num_buckets(), table);
}

void LoopDispatcher::Reorder(const std::vector<int>& order) {
  options_.order = order;
  dispatcher_->Reorder(Table());
}

absl::Status LoopDispatcher::TakeLosses() {
  for (bool taken = true; taken;) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<LossBits> bits,
                            losses_->Take());
    taken = bits.has_value();
  }
  return absl::OkStatus();
}

}  // namespace troupe::actors
