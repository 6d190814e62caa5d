// Optimizers of loops of one's own (torch.optim, torch.optim.lr_scheduler).
//
//   SgdOptions options{/*lr=*/0.1, /*momentum=*/0.9};
//   options.common.clip_grad_norm = 1;
//   Sgd sgd(model, options);
//   sgd.Schedule(LrSchedule::Cosine(/*steps=*/10000));
//   sgd.ZeroGrad();
//   loss.Backward();
//   sgd.Step();
//
//   Adam adam(classifier, {/*lr=*/1e-3}, /*only=*/{"fc.*"});
//
// An optimizer trains all parameters of its model whose requires_grad is set,
// or, with `only`, those of them whose name matches a pattern
// (base/name_pattern.h). All others keep their values, although they get
// gradients. Norms for clipping are those of all gradients of the model.
// Step() updates each bucket as soon as its gradients are reduced, and is the
// next step of the rank's random draws. ZeroGrad() touches no memory: the next
// gradients overwrite the last ones. Without it, they add up. A parameter that
// no backward since then has used, on any rank of its DDP, is left alone: no
// weight decay, no momentum, no step of Adam (PyTorch: .grad is None).
//
// Rates. A schedule is a function of the number of steps, counted from 0, and
// so needs no calls in the loop and is not saved. By steps, by epochs, and by
// hand:
//
//   sgd.Schedule(LrSchedule::OneCycle(epochs * loader.size()));
//   sgd.Schedule(LrSchedule::Step(30), /*every=*/loader.size());
//   sgd.Schedule([](std::int64_t epoch) { return std::pow(0.95, epoch); },
//                /*every=*/loader.size());         // LambdaLR
//   sgd.set_lr(0.5 * sgd.lr());
//
// A rate that was set wins over a schedule and stays until it is set again, or
// Schedule() ends it; it holds from the next Step() on, also if its backward
// has run. Each rank sets its own rate: all of them call the same. With the
// same calls and steps, their rates are equal to the bit.
//
// An optimizer is Saved (troupe/state.h): its tensors by their names in
// PyTorch, such as "optimizer.fc.weight.exp_avg", beside "optimizer.step", the
// number of steps; "optimizer.draws", that of the rank's random draws;
// "optimizer.lr", the next step's rate; "optimizer.lr_is_set", 1 if it was set
// (a schedule's rate follows from the step); where steps may be skipped,
// "optimizer.updates"; and, for a parameter that updates have left out because
// no rank had used it, "optimizer.fc.weight.step", the number of its own
// updates, if the optimizer depends on that number, as Adam does. A run that is
// saved after a Step() and loaded goes on with the same bits. Load() discards
// gradients.
//
// Errors: base::StatusError. kInvalidArgument names the option, the rate or the
// pattern that matches no parameter.

#ifndef TROUPE_OPTIMIZER_H_
#define TROUPE_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status_error.h"
#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/lr_schedule.h"
#include "nn/optim/optimizer.h"
#include "nn/optim/sgd.h"
#include "troupe/model.h"
#include "troupe/state.h"

namespace troupe {

using nn::AdamOptions;
using nn::LrSchedule;
using nn::SgdOptions;

class LoopRule;       // troupe/internal/loop_rule.h
struct LoopSettings;  // troupe/internal/loop_rule.h

class Optimizer : public Saved {
 public:
  // Takes any optimizer of nn/optim; `make` is called for each dtype of the
  // model's parameters. `only`: patterns of names; empty: all.
  Optimizer(const Optimizable& model,
            const std::function<std::unique_ptr<nn::Optimizer>()>& make,
            const std::vector<std::string>& only = {});

  void ZeroGrad();
  void Step(CallPlace place = CallPlace::Here());
  // Makes the f32 copies of 16-bit parameters (options.common.f32_master) equal
  // to what the program has written to the parameters: by hand, by a
  // collective, or by Load() of a bare module. Copies that round to their
  // parameter's value keep their digits. On CPUs each Step() does so itself; on
  // a GPU, where it costs as much again as an update, only this call does.
  void FollowParameters(CallPlace place = CallPlace::Here());
  // Returns the model, DDP or pipeline that it trains.
  const Optimizable& model() const { return model_; }
  // Number of steps so far, with those of the run that was loaded.
  std::int64_t steps() const;

  // Learning rate of the next step.
  double lr() const;
  // Sets the rate of all steps to come, in place of a schedule.
  void set_lr(double lr);
  // Makes the rate base_lr() times a factor, in place of other schedules and of
  // a rate that was set: factor(steps() / every), rounded down.
  void Schedule(std::function<double(std::int64_t t)> factor,
                std::int64_t every = 1);
  void Schedule(const LrSchedule& schedule, std::int64_t every = 1);
  // The rate of the options; without options, that of step 0.
  double base_lr() const;

  // Saved:
  absl::string_view default_name() const override { return "optimizer"; }
  void AddTo(State& state) override;
  void Refresh() override;
  void OnLoaded() override;

 protected:
  void set_base_lr(double lr);

 private:
  static constexpr double kAll = -1;

  OptimizableCore& core() const { return model_.optimizable(); }

  Optimizable model_;
  std::shared_ptr<LoopSettings> settings_;
  std::vector<LoopRule*> rules_;  // one for each dtype; the engine's
  // Numbers of a file.
  struct {
    std::int64_t step = 0;
    std::int64_t updates = 0;
    std::int64_t draws = 0;  // step of the rank's random draws
    double lr = 0;
    bool lr_is_set = false;
    // For each rule and slot, the number of the parameter's updates; kAll: all
    // of the run's.
    std::vector<std::vector<double>> counts;
  } saved_;
};

// An optimizer by its options.
template <typename Rule, typename Options>
class OptimizerOf : public Optimizer {
 public:
  OptimizerOf(const Optimizable& model, const Options& options,
              const std::vector<std::string>& only = {})
      : Optimizer(model, Maker(options), only) {
    set_base_lr(options.lr);
  }

 private:
  static std::function<std::unique_ptr<nn::Optimizer>()> Maker(
      const Options& options) {
    base::OrThrow(options.Validate());
    return [options] { return std::make_unique<Rule>(options); };
  }
};

using Sgd = OptimizerOf<nn::Sgd, nn::SgdOptions>;
// Adam; with nn::AdamWDefaults() as its options AdamW.
using Adam = OptimizerOf<nn::Adam, nn::AdamOptions>;
using Lamb = OptimizerOf<nn::Lamb, nn::LambOptions>;
using Lars = OptimizerOf<nn::Lars, nn::LarsOptions>;

}  // namespace troupe

#endif  // TROUPE_OPTIMIZER_H_
