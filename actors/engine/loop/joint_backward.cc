#include "actors/engine/loop/joint_backward.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace troupe::actors {

absl::Status JointBackward::Check(const LoopBackward& backward) const {
  for (const nn::Parameter* parameter : backward.tape->parameters()) {
    const bool known = std::any_of(
        models_.begin(), models_.end(), [&](const BackwardModel& model) {
          return model.engine->parameters().Has(*parameter);
        });
    if (known) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the loss depends on ", parameter->name,
        ", which is a parameter of another model; detach its output, or put "
        "both models into one module"));
  }
  for (const BackwardModel& model : models_) {
    if (models_.size() > 1 && model.engine->exact_mean()) {
      return absl::InvalidArgumentError(
          "DDPOptions::exact_mean divides the gradients of one model by the "
          "counts of its own losses, and this loss depends on several models; "
          "leave out exact_mean, or put the models into one module");
    }
    TROUPE_RETURN_IF_ERROR(model.engine->CheckBackward(backward, model.synced));
  }
  return absl::OkStatus();
}

absl::Status JointBackward::Run(const LoopBackward& backward) {
  TROUPE_RETURN_IF_ERROR(Check(backward));
  for (const BackwardModel& model : models_) {
    TROUPE_RETURN_IF_ERROR(model.engine->AwaitGradients());
  }
  const auto set_busy = [this](bool busy) {
    for (const BackwardModel& model : models_) {
      model.engine->state_.set_busy(busy);
    }
  };
  set_busy(true);
  const absl::Cleanup ended = [&set_busy] { set_busy(false); };
  std::deque<TraceScope> scopes;
  for (const BackwardModel& model : models_) {
    LoopBackward own = backward;
    own.synced = model.synced;
    TROUPE_RETURN_IF_ERROR(model.engine->BeginBackward(own, scopes));
  }
  nn::GradientSink& sink =
      models_.size() == 1
          ? static_cast<nn::GradientSink&>(*models_[0].engine->ledger_)
          : *this;
  // The models of a rank have the same kernels.
  nn::BackwardPass pass(*backward.tape, models_[0].engine->kernels(), sink,
                        nn::BackwardPass::Mode::kWhole);
  if (backward.seed.defined()) {
    pass.Seed(backward.loss, backward.seed);
  } else {
    pass.SeedLoss(backward.loss, backward.scale);
  }
  TROUPE_RETURN_IF_ERROR(RunPieces(pass));
  for (const BackwardModel& model : models_) model.engine->EndPass();
  return StartReductions();
}

absl::Status JointBackward::RunPieces(nn::BackwardPass& pass) {
  for (bool more = true; more;) {
    TROUPE_RETURN_IF_ERROR(StartReductions());
    TROUPE_ASSIGN_OR_RETURN(more, pass.Next());
    for (const BackwardModel& model : models_) {
      LoopEngine& engine = *model.engine;
      TROUPE_RETURN_IF_ERROR(engine.ledger_->status());
      engine.parts_->wait.TakeNews(
          /*expected=*/engine.parts_->reducer.in_flight() > 0);
    }
  }
  return absl::OkStatus();
}

absl::Status JointBackward::StartReductions() {
  for (const BackwardModel& model : models_) {
    if (!model.synced) continue;
    TROUPE_RETURN_IF_ERROR(model.engine->StartReductions());
  }
  return absl::OkStatus();
}

GradientLedger& JointBackward::LedgerOf(const nn::Parameter& parameter) const {
  for (const BackwardModel& model : models_) {
    if (model.engine->parameters().Has(parameter)) {
      return *model.engine->ledger_;
    }
  }
  TROUPE_CHECK(false, "a parameter of no model of the backward");
}

}  // namespace troupe::actors
