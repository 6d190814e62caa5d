// A part of a model on a device of its own, as the stages of a dataflow call
// it: forwards, backwards in the same order, and an update.
//
//   ModelPartOptions options;
//   options.model = [] { return std::make_unique<nn::Linear>(64, 10); };
//   options.optimizer = [] { return std::make_unique<nn::Sgd>(sgd); };
//   options.device = *nn::Device::Parse("cpu:0");
//   TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<ModelPart> part,
//                           ModelPart::Create(options));
//   absl::StatusOr<nn::Tensor> y = part->Forward(x);      // to the next part
//   absl::StatusOr<nn::Tensor> dx = part->Backward(dy);   // to the part before
//   absl::Status status = part->Update(/*count=*/64);
//
// The last part has a loss, and its forward takes targets too:
//
//   absl::StatusOr<nn::Tensor> stats = part->Loss(x, targets);
//   absl::StatusOr<nn::Tensor> dx = part->Backward();
//
// A forward keeps what its backward needs; a backward is that of the oldest
// forward that has had none, so several micro-batches may be under way.
// Gradients of several backwards add up until Update(), which divides them by
// `count`, the targets that count over all of them: the gradient of their mean,
// as a job has it.
//
// Parameters begin as those of a job with the same seed and names do. A stage
// of a whole model has the whole model's names (pipeline/partition.h):
//
//   options.model = [] {
//     return pipeline::BuildStage(MakeModel, {"layer3"}, /*stage=*/1);
//   };
//
// Tensors go in from any device whose memory the host may touch, and come out
// in such memory: a part on a GPU copies, and waits for the device.
//
// Errors: kInvalidArgument and what kernels return, with the module's path;
// kFailedPrecondition where a backward has no forward.
// Threads: one at a time; the one that made it, where the device asks for that.

#ifndef ACTORS_DATAFLOW_MODEL_PART_H_
#define ACTORS_DATAFLOW_MODEL_PART_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/context.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/ops/loss.h"
#include "nn/optim/optimizer.h"
#include "nn/tensor/device.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

struct ModelPartOptions {
  std::function<absl::StatusOr<std::unique_ptr<nn::Module>>()> model;
  // Null: the part is not trained, and forwards keep nothing.
  std::function<std::unique_ptr<nn::Optimizer>()> optimizer;
  nn::ops::LossFn loss;  // of the last part; null for others
  nn::Device device;
  // Opens its kernels; null: those of `device`.
  std::function<absl::StatusOr<std::unique_ptr<nn::Kernels>>()> kernels;
  std::uint64_t seed = 0;
};

class ModelPart : private nn::GradientSink {
 public:
  static absl::StatusOr<std::unique_ptr<ModelPart>> Create(
      const ModelPartOptions& options);
  ~ModelPart() override;

  absl::StatusOr<nn::Tensor> Forward(const nn::Tensor& x);
  // The statistics of the loss (nn/ops/loss.h).
  absl::StatusOr<nn::Tensor> Loss(const nn::Tensor& x,
                                  const nn::Tensor& targets);

  // The gradient of the input; zeros where the output does not depend on it,
  // undefined where the input is integers.
  absl::StatusOr<nn::Tensor> Backward(const nn::Tensor& dy);
  absl::StatusOr<nn::Tensor> Backward() { return Backward(nn::Tensor()); }

  absl::Status Update(double count);

  // Forwards that have had no backward yet.
  int under_way() const { return static_cast<int>(under_way_.size()); }
  std::int64_t updates() const { return updates_; }
  nn::Device device() const { return kernels_->device(); }
  // In order of declaration.
  std::vector<nn::Parameter*> parameters() { return model_->Parameters(); }

 private:
  struct MicroBatch;

  explicit ModelPart(const ModelPartOptions& options);
  absl::Status Init();
  absl::StatusOr<nn::Tensor> Run(const nn::Tensor& x,
                                 const nn::Tensor* targets);
  absl::StatusOr<nn::Tensor> OnDevice(const nn::Tensor& tensor);
  absl::StatusOr<nn::Tensor> OnHost(const nn::Tensor& tensor);

  // GradientSink: gradients are looked at in Update() alone.
  void GradientComplete(nn::Parameter&) override {}
  void LastReaderDone(nn::Parameter&) override {}

  const ModelPartOptions options_;
  std::unique_ptr<nn::Kernels> kernels_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<nn::ParameterArena> arena_;
  std::unique_ptr<nn::Optimizer> optimizer_;  // null: it is not trained
  nn::Tensor scalars_;
  std::deque<std::unique_ptr<MicroBatch>> under_way_;
  std::int64_t updates_ = 0;
  std::int64_t samples_ = 0;  // of forwards since the last one
};

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_MODEL_PART_H_
