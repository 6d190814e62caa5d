#include "tools/golden/model_run.h"

#include <utility>

#include "base/check.h"
#include "nn/autograd/context.h"
#include "nn/modules/to_dtype.h"
#include "nn/ops/loss.h"

namespace troupe::golden {
namespace {

using nn::Tensor;

// Ignores completed gradients: nothing here waits for a single one.
struct NoSink : nn::GradientSink {
  void GradientComplete(nn::Parameter&) override {}
  void LastReaderDone(nn::Parameter&) override {}
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRun>> ModelRun::Create(
    std::unique_ptr<nn::Sequential> model, nn::DType dtype,
    nn::Kernels& kernels) {
  nn::ToDType(*model, dtype);
  std::unique_ptr<ModelRun> run(new ModelRun(std::move(model), kernels));
  TROUPE_ASSIGN_OR_RETURN(
      run->arena_,
      nn::ParameterArena::Create({run->parameters_}, {}, kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(BindBuffers(run->model_->Buffers(), kernels));
  return run;
}

absl::Status ModelRun::SetOptimizer(std::unique_ptr<nn::Optimizer> optimizer) {
  optimizer_ = std::move(optimizer);
  TROUPE_RETURN_IF_ERROR(optimizer_->Attach(*arena_));
  return optimizer_->Begin(kernels_, *arena_);
}

absl::StatusOr<ModelRun::Batch> ModelRun::Forward(const Tensor& x,
                                                  const Tensor& labels,
                                                  nn::Tape* tape,
                                                  Tensor* loss) {
  nn::Context ctx(kernels_, tape);
  // Dropout requires the sample's position even if its rate is 0.
  ctx.set_random({/*seed=*/0, /*step=*/0, /*sample=*/0});
  Batch batch;
  batch.output = (*model_)(ctx, x);
  *loss = nn::ops::SoftmaxCrossEntropy(ctx, batch.output, labels);
  TROUPE_RETURN_IF_ERROR(ctx.status());
  batch.loss_sum = loss->data<double>()[nn::ops::kLossSum];
  batch.loss_count = loss->data<double>()[nn::ops::kLossCount];
  return batch;
}

absl::StatusOr<ModelRun::Batch> ModelRun::Forward(const Tensor& x,
                                                  const Tensor& labels) {
  Tensor loss;
  return Forward(x, labels, /*tape=*/nullptr, &loss);
}

absl::StatusOr<ModelRun::Batch> ModelRun::Train(const Tensor& x,
                                                const Tensor& labels) {
  arena_->BeginStep();
  nn::Tape tape;
  Tensor loss;
  TROUPE_ASSIGN_OR_RETURN(Batch batch, Forward(x, labels, &tape, &loss));
  NoSink sink;
  nn::BackwardPass backward(tape, kernels_, sink,
                            nn::BackwardPass::Mode::kWhole);
  backward.Seed(loss);
  for (bool more = true; more;) {
    TROUPE_ASSIGN_OR_RETURN(more, backward.Next());
  }
  TROUPE_RETURN_IF_ERROR(arena_->ZeroUnwritten(/*bucket=*/0));
  return batch;
}

absl::StatusOr<Tensor> ModelRun::Evaluate(const Tensor& x) {
  nn::Context ctx(kernels_);
  ctx.set_training(false);
  const Tensor output = (*model_)(ctx, x);
  TROUPE_RETURN_IF_ERROR(ctx.status());
  return output;
}

absl::Status ModelRun::Update(const Batch& batch) {
  TROUPE_CHECK(optimizer_ != nullptr, "SetOptimizer() was called");
  nn::StepScalars scalars;
  optimizer_->FillScalars(step_++, scalars);
  scalars.loss_count = batch.loss_count;
  return optimizer_->Update(kernels_,
                            HostScalars(scalars, kernels_.allocator()), *arena_,
                            /*bucket=*/0);
}

}  // namespace troupe::golden
