#include "actors/dataflow/model_part.h"

#include <utility>

#include "base/check.h"
#include "nn/kernels/device_queues.h"
#include "nn/kernels/loss_scale.h"
#include "nn/kernels/open_kernels.h"
#include "nn/kernels/step_scalars.h"

namespace troupe::actors {

// The tensors that a forward pass keeps for its backward pass.
struct ModelPart::MicroBatch {
  nn::Tape tape;
  nn::Tensor input, output;
};

ModelPart::ModelPart(const ModelPartOptions& options) : options_(options) {}
ModelPart::~ModelPart() = default;

absl::StatusOr<std::unique_ptr<ModelPart>> ModelPart::Create(
    const ModelPartOptions& options) {
  if (options.model == nullptr) {
    return absl::InvalidArgumentError("ModelPartOptions.model is null; set it");
  }
  std::unique_ptr<ModelPart> part(new ModelPart(options));
  TROUPE_RETURN_IF_ERROR(part->Init());
  return part;
}

absl::Status ModelPart::Init() {
  TROUPE_ASSIGN_OR_RETURN(kernels_, options_.kernels
                                        ? options_.kernels()
                                        : nn::OpenKernels(options_.device, {}));
  TROUPE_ASSIGN_OR_RETURN(model_, options_.model());
  if (model_ == nullptr) {
    return absl::InvalidArgumentError(
        "ModelPartOptions.model returned null; return a module from it");
  }
  TROUPE_RETURN_IF_ERROR(model_->CheckDeclarations());
  std::vector<nn::Parameter*> trained;
  nn::ParameterArena::Options arena;
  arena.kernels = kernels_.get();
  for (nn::Parameter* parameter : model_->Parameters()) {
    if (options_.optimizer == nullptr) parameter->requires_grad = false;
    (parameter->requires_grad ? trained : arena.frozen).push_back(parameter);
  }
  TROUPE_ASSIGN_OR_RETURN(arena_, nn::ParameterArena::Create(
                                      {trained}, arena, kernels_->allocator()));
  TROUPE_RETURN_IF_ERROR(arena_->Initialize(options_.seed));
  arena_->BeginStep();
  TROUPE_RETURN_IF_ERROR(nn::BindBuffers(model_->Buffers(), *kernels_));
  if (options_.optimizer == nullptr) return absl::OkStatus();
  optimizer_ = options_.optimizer();
  if (optimizer_ == nullptr) {
    return absl::InvalidArgumentError(
        "ModelPartOptions.optimizer returned null; return an optimizer from "
        "it");
  }
  TROUPE_RETURN_IF_ERROR(optimizer_->Attach(*arena_));
  TROUPE_RETURN_IF_ERROR(optimizer_->Begin(*kernels_, *arena_));
  TROUPE_ASSIGN_OR_RETURN(
      scalars_, nn::Tensor::Create({nn::kNumStepScalars}, nn::DType::kF64,
                                   kernels_->allocator()));
  return optimizer_->MaySkipSteps() ? MakeSkips() : absl::OkStatus();
}

absl::Status ModelPart::MakeSkips() {
  TROUPE_ASSIGN_OR_RETURN(
      skips_, nn::Tensor::Create({nn::kNumLossScaleState}, nn::DType::kF64,
                                 kernels_->allocator()));
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor first,
                          nn::Tensor::Create(skips_.shape(), skips_.dtype(),
                                             nn::HostAllocator(*kernels_)));
  nn::LossScaleIn(first) = nn::LossScaleState();
  nn::LossScaleIn(first).scale = 1;
  nn::CopyBytes(*kernels_, nn::Queue::kCompute, first, skips_);
  return nn::Synchronize(*kernels_, nn::Record(*kernels_, nn::Queue::kCompute));
}

absl::StatusOr<nn::Tensor> ModelPart::OnDevice(const nn::Tensor& tensor) {
  if (tensor.device() == kernels_->device()) return tensor.Detached();
  return nn::CopyToDevice(*kernels_, nn::Queue::kCompute, tensor);
}

absl::StatusOr<nn::Tensor> ModelPart::OnHost(const nn::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (kernels_->queues() == nullptr) return tensor.Detached();
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor copy, nn::CopyToHost(*kernels_, nn::Queue::kCompute, tensor));
  TROUPE_RETURN_IF_ERROR(
      nn::Synchronize(*kernels_, nn::Record(*kernels_, nn::Queue::kCompute)));
  return copy;
}

absl::StatusOr<nn::Tensor> ModelPart::Forward(const nn::Tensor& x) {
  return Run(x, /*targets=*/nullptr);
}

absl::StatusOr<nn::Tensor> ModelPart::Loss(const nn::Tensor& x,
                                           const nn::Tensor& targets) {
  if (options_.loss == nullptr) {
    return absl::FailedPreconditionError(
        "Loss() of a ModelPart without a loss; set ModelPartOptions.loss");
  }
  return Run(x, &targets);
}

absl::StatusOr<nn::Tensor> ModelPart::Run(const nn::Tensor& x,
                                          const nn::Tensor* targets) {
  const bool trains = optimizer_ != nullptr;
  auto micro = std::make_unique<MicroBatch>();
  TROUPE_ASSIGN_OR_RETURN(micro->input, OnDevice(x));
  if (trains) micro->input = micro->tape.Watch(micro->input);
  nn::Context ctx(*kernels_, trains ? &micro->tape : nullptr);
  ctx.set_training(trains);
  ctx.set_random({options_.seed, updates_, samples_});
  samples_ += x.shape().rank() == 0 ? 1 : x.dim(0);
  micro->output = (*model_)(ctx, micro->input);
  if (targets != nullptr && ctx.ok()) {
    TROUPE_ASSIGN_OR_RETURN(const nn::Tensor wanted, OnDevice(*targets));
    micro->output = options_.loss(ctx, std::move(micro->output), wanted);
  }
  TROUPE_RETURN_IF_ERROR(ctx.status());
  absl::StatusOr<nn::Tensor> output = OnHost(micro->output);
  if (trains) under_way_.push_back(std::move(micro));
  return output;
}

absl::StatusOr<nn::Tensor> ModelPart::Backward(const nn::Tensor& dy) {
  if (under_way_.empty()) {
    return absl::FailedPreconditionError(
        "Backward() of a ModelPart without a forward; call Forward() or Loss() "
        "first");
  }
  const std::unique_ptr<MicroBatch> micro = std::move(under_way_.front());
  under_way_.pop_front();
  nn::BackwardPass pass(micro->tape, *kernels_, *this,
                        nn::BackwardPass::Mode::kWhole);
  if (dy.defined()) {
    TROUPE_ASSIGN_OR_RETURN(const nn::Tensor here, OnDevice(dy));
    pass.Seed(micro->output, here);
  } else {
    pass.Seed(micro->output);
  }
  for (bool more = true; more;) {
    TROUPE_ASSIGN_OR_RETURN(more, pass.Next());
  }
  if (!nn::IsFloating(micro->input.dtype())) return nn::Tensor();
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor dx, micro->tape.InputGradOrZeros(
                                                   *kernels_, micro->input));
  return OnHost(dx);
}

absl::Status ModelPart::Update(double count) {
  if (optimizer_ == nullptr) {
    return absl::FailedPreconditionError(
        "Update() of a ModelPart without an optimizer; set "
        "ModelPartOptions.optimizer");
  }
  nn::StepScalars scalars;
  optimizer_->FillScalars(updates_, scalars);
  scalars.loss_count = count;
  TROUPE_RETURN_IF_ERROR(kernels_->SetStepScalars(scalars, scalars_));
  if (skips_.defined()) {
    TROUPE_RETURN_IF_ERROR(kernels_->ApplyLossScale(skips_, scalars_));
  }
  for (int bucket = 0; bucket < arena_->num_buckets(); ++bucket) {
    TROUPE_RETURN_IF_ERROR(arena_->ZeroUnwritten(bucket));
  }
  if (optimizer_->NeedsAllBuckets()) {
    TROUPE_RETURN_IF_ERROR(optimizer_->Inspect(*kernels_, scalars_, *arena_));
    TROUPE_RETURN_IF_ERROR(optimizer_->Conclude(*kernels_, scalars_));
  }
  if (skips_.defined()) {
    TROUPE_RETURN_IF_ERROR(kernels_->UpdateLossScale(nn::LossScaleRule::Fixed(),
                                                     scalars_, skips_));
  }
  for (int bucket = 0; bucket < arena_->num_buckets(); ++bucket) {
    TROUPE_RETURN_IF_ERROR(
        optimizer_->Update(*kernels_, scalars_, *arena_, bucket));
  }
  arena_->BeginStep();
  samples_ = 0;
  ++updates_;
  return absl::OkStatus();
}

}  // namespace troupe::actors
