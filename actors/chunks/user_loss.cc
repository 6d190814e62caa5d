#include "actors/chunks/user_loss.h"

#include <exception>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/modules/localise.h"
#include "nn/ops/loss.h"
#include "pipeline/partition.h"

namespace troupe::actors {
namespace {

// Returns the result of `call` if it is a loss; otherwise fails. `what`: name
// of the user's code in the error.
template <typename Call>
nn::Tensor LossBy(nn::Context& ctx, const char* what, Call call) {
  nn::Tensor stats;
  try {
    stats = call();
  } catch (const std::exception&) {
    return ctx.FailThrown();
  }
  if (!ctx.ok() || (nn::ops::IsLoss(stats) && !stats.is_meta())) return stats;
  return ctx.Fail(absl::InvalidArgumentError(absl::StrCat(
      what, " returned ",
      stats.defined() ? stats.ToString() : "an undefined tensor",
      ", not the statistics of a loss; return those of nn/ops/loss.h")));
}

// Makes the last stage of a model leave its logits split, if the loss takes
// them so, and returns how they are split; none: they are whole.
std::optional<nn::ops::SplitLogits> SplitOutput(const JobSpec& spec,
                                                nn::Module& last) {
  if (spec.training_step || nn::ops::FindSplitLoss(spec.loss) == nullptr) {
    return std::nullopt;
  }
  return nn::KeepLogitsSplit(last);
}

}  // namespace

bool HasOwnStep(const JobSpec& spec, StepKind kind) {
  return spec.training_step && kind != StepKind::kPredict &&
         (kind == StepKind::kTrain || !spec.loss);
}

absl::StatusOr<std::unique_ptr<nn::Module>> BuildChunk(
    const JobSpec& spec, const pipeline::Plan& plan, int stage, int rank) {
  TROUPE_ASSIGN_OR_RETURN(
      std::unique_ptr<nn::Module> module,
      pipeline::BuildStage(
          spec.model, plan.cuts, stage,
          pipeline::PlacesOf(plan.mesh, rank, plan.sequence_parallel,
                             plan.depth_blocks)));
  if (stage + 1 == static_cast<int>(plan.stages.size())) {
    SplitOutput(spec, *module);
  }
  return module;
}

nn::Tensor LossOf(nn::Context& ctx, const JobSpec& spec, nn::Module& last,
                  nn::Tensor output, const nn::Tensor& target) {
  return LossBy(ctx, "the loss function", [&] {
    const auto split = SplitOutput(spec, last);
    if (!split) return spec.loss(ctx, std::move(output), target);
    const nn::ops::SplitLoss& loss = *nn::ops::FindSplitLoss(spec.loss);
    return loss.split(ctx, std::move(output), target, *split);
  });
}

nn::Tensor LossByStep(nn::Context& ctx, const JobSpec& spec, nn::Module& model,
                      const data::Batch& batch) {
  return LossBy(ctx, "the training step",
                [&] { return spec.training_step(ctx, model, batch); });
}

}  // namespace troupe::actors
