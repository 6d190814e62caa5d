// Computes the outputs of a trained model for samples, outside of a job.
//
//   TROUPE_RETURN_IF_ERROR(LoadModel(saved, *model, *kernels));
//   TROUPE_ASSIGN_OR_RETURN(
//       const Prediction seen,
//       Predict(*model, *kernels, *splits.test, {0, 1, 2}, DType::kF32));
//   seen.output.shape();                        // [3, 10]: a row a sample
//
// Evaluation mode: dropout is off, batch norms use their running statistics.
// Runs in the caller's thread and the threads of the kernels, or through the
// stages of a session.

#ifndef ACTORS_INFERENCE_PREDICT_H_
#define ACTORS_INFERENCE_PREDICT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "actors/inference/inference_session.h"
#include "data/dataset.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::actors {

struct Prediction {
  nn::Tensor input;   // [B, ...], after the conversion to `dtype`
  nn::Tensor output;  // [B, ...], the model's
};

// Returns samples `indices` as the dataset has them, [B, ...], in memory of
// `memory`.
//   kOutOfRange: an index is no sample.
//   other: from the dataset.
absl::StatusOr<nn::Tensor> InputsOf(const data::Dataset& samples,
                                    absl::Span<const std::int64_t> indices,
                                    nn::Allocator& memory);

// Runs `model` on the B samples `indices` of `samples` in one batch. Their
// floats are converted to `dtype` before (JobSpec::dtype). The model's
// parameters have memory of `kernels`, which compute on the host.
//   kOutOfRange: an index is no sample.
//   kInvalidArgument: the model does not take them; names module and shapes.
//   other: from the dataset.
absl::StatusOr<Prediction> Predict(nn::Module& model, nn::Kernels& kernels,
                                   const data::Dataset& samples,
                                   absl::Span<const std::int64_t> indices,
                                   nn::DType dtype);

// Runs a session's model on the samples in one batch. Floats are converted to
// the dtype of the session's spec.
//   kOutOfRange: an index is no sample.
//   other: the same as InferenceSession::Run().
absl::StatusOr<nn::Tensor> Predict(InferenceSession& session,
                                   const data::Dataset& samples,
                                   absl::Span<const std::int64_t> indices);

}  // namespace troupe::actors

#endif  // ACTORS_INFERENCE_PREDICT_H_
