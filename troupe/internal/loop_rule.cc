#include "troupe/internal/loop_rule.h"

#include <algorithm>
#include <cstddef>

#include "base/name_pattern.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/step_scalars.h"
#include "troupe/internal/master_values.h"

namespace troupe {
namespace {

// Index of the rate in a tensor of StepScalars.
constexpr int kLrScalar = 0;
static_assert(offsetof(nn::StepScalars, lr) == kLrScalar * sizeof(double));

// Size of the parts of an update that reads master values twice: the second
// time from the cache.
constexpr std::int64_t kPartElems = std::int64_t{1} << 15;

}  // namespace

bool LoopRule::Trains(const nn::Parameter& parameter) const {
  const std::vector<std::string>& only = settings_->only;
  return only.empty() ||
         std::any_of(only.begin(), only.end(), [&](const std::string& pattern) {
           return base::MatchesPattern(pattern, parameter.name);
         });
}

absl::StatusOr<std::int64_t> LoopRule::EngineUpdates(
    std::int64_t step, nn::Kernels& kernels) const {
  if (!MaySkipSteps()) return step;
  if (!last_scalars_.defined()) return 0;
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor host,
      nn::CopyToHost(kernels, nn::Queue::kCompute, last_scalars_));
  TROUPE_RETURN_IF_ERROR(
      nn::Synchronize(kernels, nn::Record(kernels, nn::Queue::kCompute)));
  const nn::StepScalars& last = nn::ScalarsIn(host);
  return static_cast<std::int64_t>(last.step) + (last.non_finite == 0 ? 1 : 0);
}

absl::StatusOr<std::int64_t> LoopRule::Updates(std::int64_t step,
                                               nn::Kernels& kernels) const {
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t updates,
                          EngineUpdates(step, kernels));
  return updates - first_update_;
}

absl::Status LoopRule::SetUpdates(std::int64_t updates, std::int64_t step,
                                  nn::Kernels& kernels) {
  TROUPE_ASSIGN_OR_RETURN(const std::int64_t engine_updates,
                          EngineUpdates(step, kernels));
  first_update_ = engine_updates - updates;
  return absl::OkStatus();
}

absl::Status LoopRule::Attach(nn::ParameterArena& arena) {
  arena_ = &arena;
  for (const nn::ArenaSlot& slot : arena.slots()) {
    if (slot.bucket == nn::kNoBucket || !Trains(*slot.parameter)) continue;
    ranges_.push_back({slot.begin, slot.begin + slot.parameter->shape.numel()});
  }
  return rule_->Attach(arena);
}

void LoopRule::SetFirstUpdates(const nn::ParameterArena& arena,
                               absl::Span<const double> first) {
  engine_left_out_.assign(first.begin(), first.end());
  std::vector<double> run;
  for (std::size_t i = 0; i < arena.slots().size(); ++i) {
    run.push_back(LeftOut(i));
  }
  rule_->SetFirstUpdates(arena, run);
}

double LoopRule::LeftOut(std::size_t slot) const {
  return (engine_left_out_.empty() ? 0 : engine_left_out_[slot]) +
         (left_out_before_.empty() ? 0 : left_out_before_[slot]);
}

void LoopRule::SetLeftOut(absl::Span<const double> left_out) {
  left_out_before_.assign(left_out.begin(), left_out.end());
  for (std::size_t i = 0; i < engine_left_out_.size(); ++i) {
    left_out_before_[i] -= engine_left_out_[i];
  }
  rule_->SetFirstUpdates(*arena_, left_out);
}

double LoopRule::LearningRate(std::int64_t step) const {
  step += settings_->steps_before;
  if (settings_->set_lr.has_value()) return *settings_->set_lr;
  if (!settings_->factor) return rule_->LearningRate(step);
  return settings_->base_lr * settings_->factor(step);
}

void LoopRule::FillScalars(std::int64_t step, nn::StepScalars& values) const {
  rule_->FillScalars(step, values);
  values.lr = LearningRate(step);
  settings_->given_lr = settings_->lr = values.lr;
}

absl::StatusOr<nn::Tensor> LoopRule::ScalarsOfRun(const nn::Tensor& scalars,
                                                  nn::Kernels& kernels) const {
  // The rate was set after the step's first backward.
  if (settings_->lr != settings_->given_lr) {
    nn::Tensor lr = scalars.FlatView(kLrScalar, {1});
    TROUPE_RETURN_IF_ERROR(kernels.Fill(settings_->lr, lr));
  }
  if (first_update_ == 0) return scalars;
  TROUPE_ASSIGN_OR_RETURN(nn::Tensor counted,
                          nn::Tensor::Create(scalars.shape(), scalars.dtype(),
                                             kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(
      kernels.CountFrom(static_cast<double>(first_update_), scalars, counted));
  return counted;
}

absl::Status LoopRule::Update(nn::Kernels& kernels, const nn::Tensor& scalars,
                              nn::ParameterArena& arena,
                              const nn::ArenaRange& range,
                              const nn::Tensor& grads) {
  // On a device, where that would double the update's cost, the program calls
  // Optimizer::FollowParameters().
  const bool follows =
      MasterValuesOf(arena) != nullptr && kernels.queues() == nullptr;
  const bool cuts = IsElementwise() && follows;
  const std::int64_t most = cuts ? kPartElems : range.size();
  for (std::int64_t begin = range.begin; begin < range.end; begin += most) {
    const nn::ArenaRange part = {begin, std::min(begin + most, range.end)};
    if (follows) {
      TROUPE_RETURN_IF_ERROR(FollowValues(kernels, arena, part));
    }
    TROUPE_RETURN_IF_ERROR(rule_->UpdateRange(
        kernels, scalars, arena, part,
        grads.FlatView(begin - range.begin, nn::Shape{part.size()})));
  }
  return absl::OkStatus();
}

absl::Status LoopRule::UpdateRange(nn::Kernels& kernels,
                                   const nn::Tensor& scalars,
                                   nn::ParameterArena& arena,
                                   const nn::ArenaRange& range,
                                   const nn::Tensor& grads) {
  if (MaySkipSteps()) {
    if (!last_scalars_.defined()) {
      TROUPE_ASSIGN_OR_RETURN(
          last_scalars_, nn::Tensor::Create(scalars.shape(), scalars.dtype(),
                                            kernels.allocator()));
    }
    TROUPE_RETURN_IF_ERROR(kernels.Copy(scalars, last_scalars_));
  }
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor own, ScalarsOfRun(scalars, kernels));
  if (settings_->only.empty()) {
    return Update(kernels, own, arena, range, grads);
  }
  for (const nn::ArenaRange& trained : ranges_) {
    const nn::ArenaRange part = {std::max(trained.begin, range.begin),
                                 std::min(trained.end, range.end)};
    if (part.begin >= part.end) continue;
    TROUPE_RETURN_IF_ERROR(Update(
        kernels, own, arena, part,
        grads.FlatView(part.begin - range.begin, nn::Shape{part.size()})));
  }
  return absl::OkStatus();
}

}  // namespace troupe
