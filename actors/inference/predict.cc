#include "actors/inference/predict.h"

#include "base/check.h"
#include "nn/autograd/context.h"
#include "nn/ops/cast.h"
#include "nn/tensor/caching_allocator.h"

namespace troupe::actors {

absl::StatusOr<nn::Tensor> InputsOf(const data::Dataset& samples,
                                    absl::Span<const std::int64_t> indices,
                                    nn::Allocator& memory) {
  const data::SampleSpec& spec = samples.spec();
  const auto count = static_cast<std::int64_t>(indices.size());
  TROUPE_ASSIGN_OR_RETURN(
      nn::Tensor input,
      nn::Tensor::Create(spec.InputShape(count), spec.input_dtype, memory));
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor unused,
      nn::Tensor::Create(spec.TargetShape(count), spec.target_dtype, memory));
  TROUPE_RETURN_IF_ERROR(samples.Fill(indices, /*epoch=*/0, input, unused));
  return input;
}

absl::StatusOr<Prediction> Predict(nn::Module& model, nn::Kernels& kernels,
                                   const data::Dataset& samples,
                                   absl::Span<const std::int64_t> indices,
                                   nn::DType dtype) {
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor x,
                          InputsOf(samples, indices, kernels.allocator()));
  nn::Context ctx(kernels);
  ctx.set_training(false);
  Prediction seen;
  seen.input = nn::IsFloating(x.dtype()) ? nn::ops::Cast(ctx, x, dtype) : x;
  seen.output = model(ctx, seen.input);
  if (!ctx.ok()) return ctx.status();
  return seen;
}

absl::StatusOr<nn::Tensor> Predict(InferenceSession& session,
                                   const data::Dataset& samples,
                                   absl::Span<const std::int64_t> indices) {
  nn::CachingAllocator memory;
  TROUPE_ASSIGN_OR_RETURN(const nn::Tensor input,
                          InputsOf(samples, indices, memory));
  return session.Run(input);
}

}  // namespace troupe::actors
