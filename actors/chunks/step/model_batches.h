// The batches of a step, in the form that a chunk's kernels read: in their
// memory, and floating tensors in the model's dtype. Tokens stay integers.
//
//   ModelBatches batches(kernels, nn::DType::kBF16);
//   batches.Begin(std::move(loaded));             // one per micro-batch
//   TROUPE_ASSIGN_OR_RETURN(nn::Tensor x, batches.Inputs(/*micro_batch=*/0));
//   TROUPE_ASSIGN_OR_RETURN(nn::Tensor y, batches.Targets(0));
//
// A device with queues copies a batch while it works on the one before
// (staged_copy.h).
//
// Errors: kResourceExhausted: there is no memory for the tensor.
// Threads: one at a time.

#ifndef ACTORS_CHUNKS_STEP_MODEL_BATCHES_H_
#define ACTORS_CHUNKS_STEP_MODEL_BATCHES_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "actors/chunks/step/staged_copy.h"
#include "actors/chunks/step/step_types.h"
#include "data/batch.h"
#include "nn/kernels/kernels.h"
#include "nn/tensor/dtype.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

class ModelBatches {
 public:
  // `dtype`: dtype of the model's data. `kernels` outlives it.
  ModelBatches(nn::Kernels& kernels, nn::DType dtype)
      : kernels_(kernels), dtype_(dtype), inputs_(kernels), targets_(kernels) {}

  // Takes the batches of a step, one for each micro-batch.
  void Begin(StepBatches batches) { batches_ = std::move(batches); }
  int size() const { return static_cast<int>(batches_.size()); }
  // Returns the place of a batch in the data (data::Batch::position).
  std::int64_t position(int micro_batch) const {
    return batches_[micro_batch].position;
  }
  const nn::TextPlaces& texts(int micro_batch) const {
    return batches_[micro_batch].texts;
  }

  // Returns a batch with both.
  absl::StatusOr<data::Batch> Whole(int micro_batch);
  absl::StatusOr<nn::Tensor> Inputs(int micro_batch) {
    return Convert(batches_[micro_batch].inputs, inputs_);
  }
  absl::StatusOr<nn::Tensor> Targets(int micro_batch) {
    return Convert(batches_[micro_batch].targets, targets_);
  }

 private:
  absl::StatusOr<nn::Tensor> Convert(const nn::Tensor& loaded,
                                     StagedCopy& copy);

  nn::Kernels& kernels_;
  const nn::DType dtype_;
  StagedCopy inputs_, targets_;  // unused without queues
  StepBatches batches_;
};

}  // namespace troupe::actors

#endif  // ACTORS_CHUNKS_STEP_MODEL_BATCHES_H_
