#include "nn/generate/generate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/check.h"
#include "nn/autograd/context.h"
#include "nn/ops/cast.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {
namespace {

// A text grows by one token at a time, and each length would be a new shape for
// the kernels. So its end is padded to a power of two, at least this length: a
// causal model's rows do not depend on later tokens.
constexpr std::int64_t kShortestForward = 16;

std::int64_t ForwardLength(std::int64_t tokens, std::int64_t context) {
  std::int64_t length = kShortestForward;
  while (length < tokens) length *= 2;
  return std::min(length, context);
}

// Computes the logits for the token after `text`, which is no longer than the
// context. The span points into `output`, which keeps them.
absl::StatusOr<absl::Span<const float>> NextLogits(
    const LogitsFn& logits, Allocator& memory,
    absl::Span<const std::int32_t> text, std::int64_t context, Tensor* output) {
  const std::int64_t count = static_cast<std::int64_t>(text.size());
  const std::int64_t length = ForwardLength(count, context);
  TROUPE_ASSIGN_OR_RETURN(Tensor input,
                          Tensor::Create({1, length}, DType::kI64, memory));
  std::int64_t* tokens = input.data<std::int64_t>();
  std::fill(std::copy(text.begin(), text.end(), tokens), tokens + length, 0);
  TROUPE_ASSIGN_OR_RETURN(*output, logits(input));
  const Shape& shape = output->shape();
  if (shape.rank() != 3 || shape[0] != 1 || shape[1] != length ||
      shape[2] == 0 || output->dtype() != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model gives ", DTypeName(output->dtype()), " ", shape.ToString(),
        " for a text of ", length, " tokens, not f32 [1, ", length,
        ", vocabulary]; give a model of language"));
  }
  return absl::MakeConstSpan(output->data<float>() + (count - 1) * shape[2],
                             static_cast<std::size_t>(shape[2]));
}

}  // namespace

absl::Status Generate(Module& model, Kernels& kernels,
                      std::vector<std::int32_t> prompt,
                      const GenerateOptions& options,
                      const std::function<bool(std::int32_t)>& on_token) {
  const LogitsFn logits = [&](const Tensor& tokens) -> absl::StatusOr<Tensor> {
    Context ctx(kernels);
    ctx.set_training(false);
    Tensor output = ops::Cast(ctx, model(ctx, tokens), DType::kF32);
    if (!ctx.ok()) return ctx.status();
    return output;
  };
  return Generate(logits, kernels.allocator(), std::move(prompt), options,
                  on_token);
}

absl::Status Generate(const LogitsFn& logits, Allocator& memory,
                      std::vector<std::int32_t> prompt,
                      const GenerateOptions& options,
                      const std::function<bool(std::int32_t)>& on_token) {
  TROUPE_RETURN_IF_ERROR(options.sampling.Validate());
  if (options.context < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "GenerateOptions::context must be at least 1, not ", options.context));
  }
  if (prompt.empty()) {
    return absl::InvalidArgumentError(
        "Generate(): the prompt is empty; begin it with at least one token");
  }
  std::vector<std::int32_t> text = std::move(prompt);
  TokenChoice choice(options.sampling);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::size_t seen =
        std::min(text.size(), static_cast<std::size_t>(options.context));
    Tensor output;
    TROUPE_ASSIGN_OR_RETURN(
        const absl::Span<const float> next,
        NextLogits(logits, memory, absl::MakeConstSpan(text).last(seen),
                   options.context, &output));
    TROUPE_ASSIGN_OR_RETURN(const std::int32_t token, choice.Next(next, text));
    if (!on_token(token)) return absl::OkStatus();
    text.push_back(token);
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
