// A part of a model on one device, for the stages of a dataflow to call:
// forward passes, backward passes in the same order, and an optimizer step.
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
// The last part has a loss, and its forward pass takes targets too:
//
//   absl::StatusOr<nn::Tensor> stats = part->Loss(x, targets);
//   absl::StatusOr<nn::Tensor> dx = part->Backward();
//
// A forward pass keeps the tensors that its backward pass needs. Backward()
// belongs to the oldest forward pass without one, so several micro-batches may
// be in flight. Gradients accumulate until Update(), which divides them by
// `count`, the number of targets of all these micro-batches: like a job's, they
// are the gradient of the mean loss.
//
// If the optimizer skips steps with gradients that are not finite
// (OptimizerOptions::skip_nonfinite), a skipped step is none for its bias
// corrections either, as in a job.
//
// Parameters start with the same values as in a job with the same seed and
// names. For a stage to have the names of the whole model, build it from that
// (pipeline/partition.h):
//
//   options.model = [] {
//     return pipeline::BuildStage(MakeModel, {"layer3"}, /*stage=*/1);
//   };
//
// Inputs may be in any memory that the host can access, and outputs are in such
// memory: a part on a GPU copies, and waits for the device.
//
// Errors: kInvalidArgument and the kernels' errors, with the module's path;
// kFailedPrecondition if a backward pass has no forward pass.
// Threads: one at a time; the one that created it, if the device requires that.

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
  // Null: the part is not trained, and forward passes keep no tensors.
  std::function<std::unique_ptr<nn::Optimizer>()> optimizer;
  nn::ops::LossFn loss;  // set for the last part; null for others
  nn::Device device;
  // Opens the kernels; null: the default kernels of `device`.
  std::function<absl::StatusOr<std::unique_ptr<nn::Kernels>>()> kernels;
  std::uint64_t seed = 0;
};

class ModelPart : private nn::GradientSink {
 public:
  static absl::StatusOr<std::unique_ptr<ModelPart>> Create(
      const ModelPartOptions& options);
  ~ModelPart() override;

  absl::StatusOr<nn::Tensor> Forward(const nn::Tensor& x);
  // Returns the statistics of the loss (nn/ops/loss.h).
  absl::StatusOr<nn::Tensor> Loss(const nn::Tensor& x,
                                  const nn::Tensor& targets);

  // Returns the gradient of the input: zeros if the output does not depend on
  // it, an undefined tensor if the input is of an integer type.
  absl::StatusOr<nn::Tensor> Backward(const nn::Tensor& dy);
  absl::StatusOr<nn::Tensor> Backward() { return Backward(nn::Tensor()); }

  absl::Status Update(double count);

  // Returns the number of forward passes without a backward pass yet.
  int under_way() const { return static_cast<int>(under_way_.size()); }
  // Returns the number of calls of Update(), skipped steps included.
  std::int64_t updates() const { return updates_; }
  nn::Device device() const { return kernels_->device(); }
  // Returns the parameters, in order of declaration.
  std::vector<nn::Parameter*> parameters() { return model_->Parameters(); }

 private:
  struct MicroBatch;

  explicit ModelPart(const ModelPartOptions& options);
  absl::Status Init();
  absl::Status MakeSkips();
  absl::StatusOr<nn::Tensor> Run(const nn::Tensor& x,
                                 const nn::Tensor* targets);
  absl::StatusOr<nn::Tensor> OnDevice(const nn::Tensor& tensor);
  absl::StatusOr<nn::Tensor> OnHost(const nn::Tensor& tensor);

  // GradientSink: nothing to do, since Update() reads all gradients.
  void GradientComplete(nn::Parameter&) override {}
  void LastReaderDone(nn::Parameter&) override {}

  const ModelPartOptions options_;
  std::unique_ptr<nn::Kernels> kernels_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<nn::ParameterArena> arena_;
  std::unique_ptr<nn::Optimizer> optimizer_;  // null if it is not trained
  nn::Tensor scalars_;
  // Counts skipped steps (nn/kernels/loss_scale.h); undefined if none may be.
  nn::Tensor skips_;
  std::deque<std::unique_ptr<MicroBatch>> under_way_;
  std::int64_t updates_ = 0;
  std::int64_t samples_ = 0;  // number in forward passes since the last update
};

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_MODEL_PART_H_
