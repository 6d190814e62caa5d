#include "actors/spec/training_step.h"

#include <memory>

#include "absl/status/status.h"

namespace troupe::actors {
namespace {

class StepModule : public nn::Module {
 public:
  StepModule(std::unique_ptr<nn::Module> model, TrainingStepFn step,
             const data::SampleSpec& sample, nn::DType dtype)
      : step_(std::move(step)),
        sample_(sample),
        target_dtype_(
            nn::IsFloating(sample.target_dtype) ? dtype : sample.target_dtype),
        model_(AddChild("", std::move(model))) {}

  nn::Tensor Forward(nn::Context& ctx, const nn::Tensor& x) override {
    data::Batch batch;
    batch.inputs = x;
    batch.global_batch_size = x.dim(0);
    batch.targets =
        ctx.Empty("targets", sample_.TargetShape(x.dim(0)), target_dtype_);
    return step_(ctx, model_, batch);
  }

 private:
  const TrainingStepFn step_;
  const data::SampleSpec sample_;
  const nn::DType target_dtype_;
  nn::Module& model_;
};

}  // namespace

nn::Tensor JobTrainingStep::FailOtherModel(nn::Context& ctx) {
  return ctx.Fail(absl::InvalidArgumentError(
      "the training step is a member of another class than the model; give "
      "JobSpec.training_step that of the model which JobSpec.model makes"));
}

nn::ModelFactory ModelOfStep(const nn::ModelFactory& model,
                             const TrainingStepFn& step,
                             const data::SampleSpec& sample, nn::DType dtype) {
  return [=]() -> std::unique_ptr<nn::Module> {
    std::unique_ptr<nn::Module> made = model();
    if (made == nullptr) return nullptr;
    return std::make_unique<StepModule>(std::move(made), step, sample, dtype);
  };
}

}  // namespace troupe::actors
