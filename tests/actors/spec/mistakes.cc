// Mistakes in a JobSpec. compile_errors.bzl compiles this file, which must
// fail, and mistakes_test.py compares the errors with the comments here.

#include <memory>
#include <utility>

#include "actors/spec/job_spec.h"
#include "data/registry.h"
#include "nn/models/models.h"
#include "nn/modules/linear.h"
#include "nn/ops/loss.h"
#include "nn/optim/sgd.h"

namespace troupe {

using actors::JobSpec;

std::unique_ptr<nn::Module> MakeNet(int classes);

// Says: did you mean ‘optimizer’?
void AMisspelledField(JobSpec& spec) {
  spec.optimiser = nn::SgdOptions{/*lr=*/0.02};
}

// Says: did you mean ‘CrossEntropyLoss’?
void AMisspelledLoss(JobSpec& spec) { spec.loss = nn::ops::CrossEntropyLos(); }

// Says: give options: spec.optimizer = nn::SgdOptions{/*lr=*/0.02}; or a
// function: spec.optimizer = [] { return std::make_unique<MyOptimizer>(); };
void AnOptimizer(JobSpec& spec) {
  spec.optimizer = nn::Sgd(nn::SgdOptions{/*lr=*/0.02});
}

// Says: give options: spec.optimizer = nn::SgdOptions{/*lr=*/0.02};
void APointerToAnOptimizer(JobSpec& spec) {
  spec.optimizer = std::make_unique<nn::Sgd>(nn::SgdOptions());
}

// Says: give options: spec.optimizer = nn::SgdOptions{/*lr=*/0.02};
void ALearningRate(JobSpec& spec) { spec.optimizer = 0.02; }

// Says: write spec.loss = nn::ops::CrossEntropyLoss();
void ALossWithOptions(JobSpec& spec) {
  spec.loss = nn::ops::SoftmaxCrossEntropy;
}

// Says: as a loss function write nn::ops::CrossEntropyLoss()
void ACallOfALoss(JobSpec& spec) { spec.loss = nn::ops::SoftmaxCrossEntropy(); }

// Says: this loss has a fourth parameter; give it: spec.loss =
// [](nn::Context& ctx, nn::Tensor y, const nn::Tensor& t)
// { return nn::ops::HuberLoss(ctx, y, t, /*delta=*/1); };
void ALossWithAFourthParameter(JobSpec& spec) {
  spec.loss = nn::ops::HuberLoss;
}

// Says: spec.loss = nn::ops::CrossEntropyLoss(); or nn::ops::MeanSquaredError;
void ANameOfALoss(JobSpec& spec) { spec.loss = "cross_entropy"; }

// Says: return MyLoss(ctx, y, t);
void ALossOfAnotherType(JobSpec& spec) {
  spec.loss = [](nn::Context&, nn::Tensor, const nn::Tensor&) { return 0.5; };
}

// Says: a training step is a function of context, model and batch that returns
// the loss:
void ATrainingStepOfOutputAndTarget(JobSpec& spec) {
  spec.training_step = nn::ops::MeanSquaredError;
}

// Says: take the model out of it: spec.model = [] { return
// nn::MakeLeNet({28, 28, 1}, 10, {}).value(); };
void AFunctionOfAStatusOr(JobSpec& spec) {
  spec.model = [] { return nn::MakeLeNet({28, 28, 1}, 10, {}); };
}

// Says: spec.model = [] { return std::make_unique<MyModel>(); };
void AStatusOr(JobSpec& spec) {
  spec.model = nn::MakeLeNet({28, 28, 1}, 10, {});
}

// Says: spec.model = [] { return std::make_unique<MyModel>(); };
void AModel(JobSpec& spec) { spec.model = nn::MakeMlp({784, 10}, {}); }

// Says: spec.model = [] { return std::make_unique<MyModel>(); };
void ALayer(JobSpec& spec) { spec.model = nn::Linear(784, 10); }

// Says: a function without arguments that returns a std::unique_ptr:
void AFunctionWithAnArgument(JobSpec& spec) { spec.model = MakeNet; }

// Says: spec.model = [] { return std::make_unique<MyModel>(); };
void ABarePointer(JobSpec& spec) {
  spec.model = [] { return new nn::Linear(784, 10); };
}

// Says: capture a std::shared_ptr in place of a std::unique_ptr
void AFunctionThatCannotBeCopied(JobSpec& spec) {
  auto width = std::make_unique<int>(64);
  spec.model = [width = std::move(width)] {
    return nn::MakeMlp({*width, 10}, {});
  };
}

// Says: take the dataset out of it: spec.train =
// data::OpenDataset({}).value().train;
void AStatusOrOfData(JobSpec& spec) { spec.train = data::OpenDataset({}); }

// Says: the ranks share a dataset, so give a std::shared_ptr: spec.train =
// data::OpenDataset({}).value().train;
void BothParts(JobSpec& spec) { spec.train = data::OpenDataset({}).value(); }

}  // namespace troupe
