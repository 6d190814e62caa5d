#include "actors/predict.h"

#include "base/check.h"
#include "nn/autograd/context.h"
#include "nn/ops/cast.h"

namespace troupe::actors {

absl::StatusOr<Prediction> Predict(nn::Module& model, nn::Kernels& kernels,
                                   const data::Dataset& samples,
                                   absl::Span<const std::int64_t> indices,
                                   nn::DType dtype) {
  const data::SampleSpec& spec = samples.spec();
  const auto count = static_cast<std::int64_t>(indices.size());
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor x,
      nn::Tensor::Create(spec.InputShape(count), spec.input_dtype,
                         kernels.allocator()));
  TROUPE_ASSIGN_OR_RETURN(
      const nn::Tensor unused,
      nn::Tensor::Create(spec.TargetShape(count), spec.target_dtype,
                         kernels.allocator()));
  TROUPE_RETURN_IF_ERROR(samples.Fill(indices, /*epoch=*/0, x, unused));
  nn::Context ctx(kernels);
  ctx.set_training(false);
  Prediction seen;
  seen.input =
      nn::IsFloating(spec.input_dtype) ? nn::ops::Cast(ctx, x, dtype) : x;
  seen.output = model(ctx, seen.input);
  if (!ctx.ok()) return ctx.status();
  return seen;
}

}  // namespace troupe::actors
