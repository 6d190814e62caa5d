// Optimizers of loops of one's own (torch.optim).
//
//   SgdOptions options{/*lr=*/0.1, /*momentum=*/0.9};
//   options.common.schedule = schedule;          // nn/optim/lr_schedule.h
//   options.common.clip_grad_norm = 1;
//   Sgd sgd(model, options);
//   sgd.ZeroGrad();
//   loss.Backward();
//   sgd.Step();
//
// An optimizer trains all parameters of its model whose requires_grad is set.
// Step() updates each bucket as soon as its gradients are reduced, and is the
// next step of the rank's random draws. ZeroGrad() touches no memory: the next
// gradients overwrite the last ones. Without it, they add up.
//
// Errors: base::StatusError.

#ifndef TROUPE_OPTIMIZER_H_
#define TROUPE_OPTIMIZER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "nn/optim/adam.h"
#include "nn/optim/layerwise.h"
#include "nn/optim/optimizer.h"
#include "nn/optim/sgd.h"
#include "troupe/model.h"

namespace troupe {

using nn::AdamOptions;
using nn::SgdOptions;

class Optimizer {
 public:
  // Takes any optimizer of nn/optim; `make` is called for each dtype of the
  // model's parameters.
  Optimizer(const Trainable& model,
            std::function<std::unique_ptr<nn::Optimizer>()> make);

  void ZeroGrad();
  void Step(CallPlace place = CallPlace::Here());
  // Number of steps so far.
  std::int64_t steps() const;
  // Learning rate of the next step.
  double lr() const { return rule_->LearningRate(steps()); }

 private:
  Trainable model_;
  std::unique_ptr<nn::Optimizer> rule_;  // for its rate
};

class Sgd : public Optimizer {
 public:
  Sgd(const Trainable& model, const SgdOptions& options)
      : Optimizer(model,
                  [options] { return std::make_unique<nn::Sgd>(options); }) {}
};

// Adam; with nn::AdamWDefaults() as its options AdamW.
class Adam : public Optimizer {
 public:
  Adam(const Trainable& model, const AdamOptions& options)
      : Optimizer(model,
                  [options] { return std::make_unique<nn::Adam>(options); }) {}
};

}  // namespace troupe

#endif  // TROUPE_OPTIMIZER_H_
