// A training step of a program's own, in place of model and loss function: it
// calls the model, or parts of it, on a batch and returns the loss, as
// training_step() of a LightningModule does.
//
//   struct Autoencoder : nn::Module {
//     nn::Var TrainingStep(nn::Context& ctx, const data::Batch& batch) {
//       nn::Var x(ctx, batch.inputs);
//       return nn::MeanSquaredError(decoder(encoder(x)), x);
//     }
//     nn::Linear& encoder = Add<nn::Linear>("encoder", 784, 32);
//     nn::Linear& decoder = Add<nn::Linear>("decoder", 32, 784);
//   };
//   spec.model = [] { return std::make_unique<Autoencoder>(); };
//   spec.training_step = &Autoencoder::TrainingStep;
//
// or a function of context, model and batch:
//
//   spec.training_step = [](nn::Context& ctx, nn::Module& model,
//                           const data::Batch& batch) {
//     return nn::ops::MeanSquaredError(ctx, model(ctx, batch.inputs),
//                                      batch.inputs);
//   };
//
// It is called for each micro-batch of a rank, in the rank's thread, with the
// rank's own model and a batch on its device. What it returns are the
// statistics of a loss (nn/ops/loss.h), whose gradients the job computes, sums
// up and applies; so it calls neither Backward() nor an optimizer. It is called
// once more before the job starts, on tensors without elements, to make the
// plan: shapes, and the parameters that it uses, must not depend on values.
//
// Errors: those of its ops, and of its exceptions; they end the job, with step
// and micro-batch.

#ifndef ACTORS_SPEC_TRAINING_STEP_H_
#define ACTORS_SPEC_TRAINING_STEP_H_

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include "data/batch.h"
#include "data/dataset.h"
#include "nn/autograd/context.h"
#include "nn/modules/module.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

using TrainingStepFn = std::function<nn::Tensor(
    nn::Context& ctx, nn::Module& model, const data::Batch& batch)>;

class JobTrainingStep : public TrainingStepFn {
 public:
  JobTrainingStep() = default;

  // Takes a member function of the model that JobSpec::model makes; another
  // model is an error of the job.
  template <typename M, typename R>
  JobTrainingStep(R (M::*step)(nn::Context&, const data::Batch&))  // NOLINT
      : TrainingStepFn([step](nn::Context& ctx, nn::Module& model,
                              const data::Batch& batch) -> nn::Tensor {
          M* const own = dynamic_cast<M*>(&model);
          if (own == nullptr) return FailOtherModel(ctx);
          return (own->*step)(ctx, batch);
        }) {}

  // Takes a function that has the parameters of TrainingStepFn and returns a
  // Tensor or Var. nullptr: none.
  template <typename F,
            std::enable_if_t<!std::is_same_v<std::decay_t<F>, JobTrainingStep>,
                             int> = 0>
  JobTrainingStep(F&& step) {  // NOLINT: implicit, so that it can be assigned
    using Step = std::decay_t<F>;
    if constexpr (std::is_same_v<Step, std::nullptr_t>) {
      // No function.
    } else if constexpr (!std::is_invocable_r_v<nn::Tensor, Step&, nn::Context&,
                                                nn::Module&,
                                                const data::Batch&>) {
      static_assert(kNever<Step>,
                    "a training step is a function of context, model and "
                    "batch that returns the loss: [](nn::Context& ctx, "
                    "nn::Module& model, const data::Batch& batch) { ... }; or "
                    "a member function of the model: nn::Var "
                    "TrainingStep(nn::Context&, const data::Batch&)");
    } else {
      TrainingStepFn::operator=(std::forward<F>(step));
    }
  }

 private:
  // False, but only once the compiler knows F.
  template <typename F>
  static constexpr bool kNever = false;

  static nn::Tensor FailOtherModel(nn::Context& ctx);
};

// Returns a factory of modules whose Forward() is the training step: a plan
// that is made of them has the parameters that the step uses, under the names
// that they have in `model`. `sample`: that of the training samples; `dtype`:
// that of floating targets. The modules run on shapes alone.
nn::ModelFactory ModelOfStep(const nn::ModelFactory& model,
                             const TrainingStepFn& step,
                             const data::SampleSpec& sample, nn::DType dtype);

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_TRAINING_STEP_H_
