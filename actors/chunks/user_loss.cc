#include "actors/chunks/user_loss.h"

#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nn/ops/loss.h"

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

}  // namespace

bool HasOwnStep(const JobSpec& spec, StepKind kind) {
  return spec.training_step && kind != StepKind::kPredict &&
         (kind == StepKind::kTrain || !spec.loss);
}

nn::Tensor LossOf(nn::Context& ctx, const JobSpec& spec, nn::Tensor output,
                  const nn::Tensor& target) {
  return LossBy(ctx, "the loss function",
                [&] { return spec.loss(ctx, std::move(output), target); });
}

nn::Tensor LossByStep(nn::Context& ctx, const JobSpec& spec, nn::Module& model,
                      const data::Batch& batch) {
  return LossBy(ctx, "the training step",
                [&] { return spec.training_step(ctx, model, batch); });
}

}  // namespace troupe::actors
