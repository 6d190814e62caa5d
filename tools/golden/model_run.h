// Trains a model on one batch, on one kernel set and without actors, so that
// each of its numbers can be compared.
//
//   TROUPE_ASSIGN_OR_RETURN(
//       std::unique_ptr<ModelRun> run,
//       ModelRun::Create(std::move(model), nn::DType::kF64, *kernels));
//   for (const nn::Parameter* p : run->parameters()) Fill(*p, p->value);
//   TROUPE_RETURN_IF_ERROR(run->SetOptimizer(std::move(sgd)));
//   TROUPE_ASSIGN_OR_RETURN(const ModelRun::Batch batch,
//                           run->Train(x, labels));
//   Show(batch.loss(), batch.output, run->parameters()[0]->grad);
//   TROUPE_RETURN_IF_ERROR(run->Update(batch));
//
// The loss is the cross entropy. Gradients are those of its sum; divide them by
// the count to get those of its mean.
//
// Parameters are unspecified until they are filled; buffers have their initial
// values. Threads: one at a time.

#ifndef TOOLS_GOLDEN_MODEL_RUN_H_
#define TOOLS_GOLDEN_MODEL_RUN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/arena/parameter_arena.h"
#include "nn/autograd/tape.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/sequential.h"
#include "nn/optim/optimizer.h"

namespace troupe::golden {

class ModelRun {
 public:
  struct Batch {
    nn::Tensor output;  // logits [..., classes]
    double loss_sum = 0;
    double loss_count = 0;

    double loss() const { return loss_sum / loss_count; }
  };

  // `kernels` must outlive the run.
  static absl::StatusOr<std::unique_ptr<ModelRun>> Create(
      std::unique_ptr<nn::Sequential> model, nn::DType dtype,
      nn::Kernels& kernels);

  nn::Sequential& model() { return *model_; }
  const std::vector<nn::Parameter*>& parameters() const { return parameters_; }

  absl::Status SetOptimizer(std::unique_ptr<nn::Optimizer> optimizer);

  // Runs forward and backward in training mode. x: images (N, H, W, C) or i64
  // tokens (N, T); labels: i64 (N) or (N, T).
  absl::StatusOr<Batch> Train(const nn::Tensor& x, const nn::Tensor& labels);
  // Runs the forward of Train() only: gradients stay.
  absl::StatusOr<Batch> Forward(const nn::Tensor& x, const nn::Tensor& labels);
  // Returns the output in evaluation mode.
  absl::StatusOr<nn::Tensor> Evaluate(const nn::Tensor& x);

  // Runs one step of the optimizer with the gradients of `batch`, which must be
  // that of the last Train(). CHECK-fails without an optimizer.
  absl::Status Update(const Batch& batch);

 private:
  ModelRun(std::unique_ptr<nn::Sequential> model, nn::Kernels& kernels)
      : kernels_(kernels),
        model_(std::move(model)),
        parameters_(model_->Parameters()) {}

  // Sets `loss` to the statistics of the loss, the root of backward.
  absl::StatusOr<Batch> Forward(const nn::Tensor& x, const nn::Tensor& labels,
                                nn::Tape* tape, nn::Tensor* loss);

  nn::Kernels& kernels_;
  const std::unique_ptr<nn::Sequential> model_;
  const std::vector<nn::Parameter*> parameters_;
  std::unique_ptr<nn::ParameterArena> arena_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  std::int64_t step_ = 0;
};

}  // namespace troupe::golden

#endif  // TOOLS_GOLDEN_MODEL_RUN_H_
