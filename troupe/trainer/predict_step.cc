#include "troupe/trainer/predict_step.h"

#include <memory>

#include "absl/status/status.h"
#include "base/status_error.h"
#include "nn/modules/net.h"

namespace troupe {
namespace {

class PredictingModel : public nn::Net {
 public:
  PredictingModel(std::unique_ptr<nn::Module> model, PredictStepFn step)
      : step_(std::move(step)), model_(AddChild("", std::move(model))) {}

  nn::Var Forward(nn::Var inputs) override {
    return step_(model_, std::move(inputs));
  }

 private:
  const PredictStepFn step_;
  nn::Module& model_;
};

}  // namespace

void TaskPredictStep::ThrowOtherModel() {
  throw base::StatusError(absl::InvalidArgumentError(
      "Task.predict_step is a member of another class than the model; give "
      "that of the model which Task.model makes"));
}

nn::ModelFactory ModelOfPredictStep(const nn::ModelFactory& model,
                                    const PredictStepFn& step) {
  return [=]() -> std::unique_ptr<nn::Module> {
    std::unique_ptr<nn::Module> made = model();
    if (made == nullptr) return nullptr;
    return std::make_unique<PredictingModel>(std::move(made), step);
  };
}

}  // namespace troupe
