// The predict_step of a Task: what a prediction computes from a batch's inputs,
// if that is not the model's forward.
//
//   struct Autoencoder : nn::Net {
//     Var Forward(Var x) override { return encoder(x); }
//     Var PredictStep(Var x) { return decoder(Forward(x)); }
//     nn::Linear& encoder = Add<nn::Linear>("encoder", 784, 32);
//     nn::Linear& decoder = Add<nn::Linear>("decoder", 32, 784);
//   };
//   Task task;
//   task.predict_step = &Autoencoder::PredictStep;
//
// or a function of the model and the inputs:
//
//   task.predict_step = [](nn::Module& model, Var x) {
//     return model(x).Softmax();
//   };
//
// It is called with the rank's own model, in evaluation, without gradients, and
// once more before the first batch, on tensors without elements: shapes must
// not depend on values.
//
// Errors: those of its ops, and of its exceptions; they end the predictions.

#ifndef TROUPE_TRAINER_PREDICT_STEP_H_
#define TROUPE_TRAINER_PREDICT_STEP_H_

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include "nn/autograd/var.h"
#include "nn/modules/module.h"

namespace troupe {

using PredictStepFn = std::function<nn::Var(nn::Module& model, nn::Var inputs)>;

class TaskPredictStep : public PredictStepFn {
 public:
  TaskPredictStep() = default;

  // Takes a member function of the model that Task::model makes; another model
  // is an error of the predictions.
  template <typename M>
  TaskPredictStep(nn::Var (M::*step)(nn::Var))  // NOLINT: implicit
      : PredictStepFn([step](nn::Module& model, nn::Var inputs) {
          M* const own = dynamic_cast<M*>(&model);
          if (own == nullptr) ThrowOtherModel();
          return (own->*step)(std::move(inputs));
        }) {}

  // Takes a function that has the parameters of PredictStepFn. nullptr: none.
  template <
      typename F,
      std::enable_if_t<!std::is_same_v<std::decay_t<F>, TaskPredictStep> &&
                           (std::is_null_pointer_v<std::decay_t<F>> ||
                            std::is_invocable_r_v<nn::Var, std::decay_t<F>&,
                                                  nn::Module&, nn::Var>),
                       int> = 0>
  TaskPredictStep(F&& step)  // NOLINT: implicit, so that it can be assigned
      : PredictStepFn(std::forward<F>(step)) {}

 private:
  [[noreturn]] static void ThrowOtherModel();
};

// Returns a factory of modules whose Forward() is the step, and whose
// parameters have the names that they have in `model`.
nn::ModelFactory ModelOfPredictStep(const nn::ModelFactory& model,
                                    const PredictStepFn& step);

}  // namespace troupe

#endif  // TROUPE_TRAINER_PREDICT_STEP_H_
