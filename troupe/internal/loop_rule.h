// The optimizer of nn/optim that the step engine of a loop is given: it passes
// each call on to another one, with the learning rate that the program has set
// and for the parameters that it trains.
//
//   auto settings = std::make_shared<LoopSettings>();
//   settings->only = {"fc.*"};
//   LoopRule rule(std::make_unique<nn::Adam>(options), settings);
//   settings->set_lr = 0.01;                    // between any two steps
//
// A model has a rule for each dtype of its parameters; all of them have the
// same settings. The engine counts the steps of this process, and the settings
// count those before it: a run that was loaded from a file. Before an update
// on a CPU f32 master values follow the parameters (master_values.h).
//
// Threads: the rank's own.

#ifndef TROUPE_INTERNAL_LOOP_RULE_H_
#define TROUPE_INTERNAL_LOOP_RULE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/arena/parameter_arena.h"
#include "nn/kernels/kernels.h"
#include "nn/optim/optimizer.h"

namespace troupe {

struct LoopSettings {
  // Patterns of names (base/name_pattern.h) of the parameters that are updated;
  // empty: all.
  std::vector<std::string> only;
  double base_lr = 0;  // rate that `factor` multiplies
  // Factor of the rate of a step, counted from 0; unset: the rule's own rates.
  std::function<double(std::int64_t step)> factor;
  // Rate of all steps to come, whatever the factor is.
  std::optional<double> set_lr;
  std::int64_t steps_before = 0;  // steps of the run before the engine's first
  // Rates of the step under way: the one that the engine's scalars have, and
  // the one to update with.
  double given_lr = 0, lr = 0;
};

class LoopRule : public nn::Optimizer {
 public:
  LoopRule(std::unique_ptr<nn::Optimizer> rule,
           std::shared_ptr<LoopSettings> settings)
      : rule_(std::move(rule)), settings_(std::move(settings)) {}

  // Returns whether the parameter is one of `only`.
  bool Trains(const nn::Parameter& parameter) const;
  // Null before Attach().
  const nn::ParameterArena* arena() const { return arena_; }
  // Returns the number of updates that the parameters have had before the
  // engine's step `step`: less than that of steps if some were skipped. Waits
  // for the device if steps may be skipped.
  absl::StatusOr<std::int64_t> Updates(std::int64_t step,
                                       nn::Kernels& kernels) const;
  // Makes `updates` that number.
  absl::Status SetUpdates(std::int64_t updates, std::int64_t step,
                          nn::Kernels& kernels);

  // Number of the run's updates that have left out the arena's slot `slot`,
  // for a rule that CountsUpdates(); the others have no use for it.
  double LeftOut(std::size_t slot) const;
  // Makes `left_out` these numbers, one for each slot.
  void SetLeftOut(absl::Span<const double> left_out);

  // nn::Optimizer:
  absl::Status Attach(nn::ParameterArena& arena) override;
  absl::Status Begin(nn::Kernels& kernels, nn::ParameterArena& arena) override {
    return rule_->Begin(kernels, arena);
  }
  bool CountsUpdates() const override { return rule_->CountsUpdates(); }
  void SetFirstUpdates(const nn::ParameterArena& arena,
                       absl::Span<const double> first) override;
  double LearningRate(std::int64_t step) const override;
  void FillScalars(std::int64_t step, nn::StepScalars& values) const override;
  absl::Status Inspect(nn::Kernels& kernels, const nn::Tensor& scalars,
                       const nn::ParameterArena& arena) override {
    return rule_->Inspect(kernels, scalars, arena);
  }
  absl::Status Conclude(nn::Kernels& kernels, nn::Tensor& scalars) override {
    return rule_->Conclude(kernels, scalars);
  }
  bool MaySkipSteps() const override { return rule_->MaySkipSteps(); }
  absl::Status UpdateRange(nn::Kernels& kernels, const nn::Tensor& scalars,
                           nn::ParameterArena& arena,
                           const nn::ArenaRange& range,
                           const nn::Tensor& grads) override;
  bool NeedsAllBuckets() const override { return rule_->NeedsAllBuckets(); }
  bool IsElementwise() const override { return rule_->IsElementwise(); }

 private:
  // Updates a range of whole parameters, or, with f32 master values on a CPU,
  // lets them follow what the program has written to the parameters, and then
  // updates.
  absl::Status Update(nn::Kernels& kernels, const nn::Tensor& scalars,
                      nn::ParameterArena& arena, const nn::ArenaRange& range,
                      const nn::Tensor& grads);
  // Returns the number of the engine's updates before its step `step`.
  absl::StatusOr<std::int64_t> EngineUpdates(std::int64_t step,
                                             nn::Kernels& kernels) const;
  // Returns the scalars of the engine's step with the program's rate and the
  // number of the run's updates.
  absl::StatusOr<nn::Tensor> ScalarsOfRun(const nn::Tensor& scalars,
                                          nn::Kernels& kernels) const;

  const std::unique_ptr<nn::Optimizer> rule_;
  const std::shared_ptr<LoopSettings> settings_;
  nn::ParameterArena* arena_ = nullptr;
  std::vector<nn::ArenaRange> ranges_;  // the parameters of `only`
  // The engine's update that is the parameters' first one: below 0 for a run
  // that was loaded.
  std::int64_t first_update_ = 0;
  // For each slot, the number of updates that have left it out, as the engine
  // counts it, and the difference from that to the run's; empty: all are 0.
  std::vector<double> engine_left_out_, left_out_before_;
  // Scalars of the last step, if steps may be skipped; undefined before one.
  nn::Tensor last_scalars_;
};

}  // namespace troupe

#endif  // TROUPE_INTERNAL_LOOP_RULE_H_
