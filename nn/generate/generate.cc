#include "nn/generate/generate.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "nn/autograd/context.h"
#include "nn/autograd/kv_cache.h"
#include "nn/generate/text_batch.h"
#include "nn/ops/cast.h"

namespace troupe::nn {
namespace {

// Passes the only text's tokens to a function.
class OneText : public TextListener {
 public:
  explicit OneText(const std::function<bool(std::int32_t)>& on_token)
      : on_token_(on_token) {}
  bool OnToken(std::size_t, std::int32_t token) override {
    return on_token_(token);
  }

 private:
  const std::function<bool(std::int32_t)>& on_token_;
};

absl::Status Check(absl::Span<const std::vector<std::int32_t>> prompts,
                   const GenerateOptions& options) {
  TROUPE_RETURN_IF_ERROR(options.sampling.Validate());
  if (options.context < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "GenerateOptions::context must be at least 1, not ", options.context));
  }
  if (options.batch < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "GenerateOptions::batch must be at least 1, not ", options.batch));
  }
  for (const std::vector<std::int32_t>& prompt : prompts) {
    if (prompt.empty()) {
      return absl::InvalidArgumentError(
          "Generate(): the prompt is empty; begin it with at least one token");
    }
  }
  return absl::OkStatus();
}

}  // namespace

LogitsFn LogitsOf(Module& model, Kernels& kernels) {
  return [&model, &kernels, cache = std::make_shared<KvCache>()](
             const Tensor& tokens,
             const TextPlaces& places) -> absl::StatusOr<Tensor> {
    Context ctx(kernels);
    ctx.set_training(false);
    if (!places.empty()) {
      TROUPE_RETURN_IF_ERROR(cache->Begin(places));
      ctx.set_kv_cache(cache.get());
    }
    Tensor output = ops::Cast(ctx, model(ctx, tokens), DType::kF32);
    if (!ctx.ok()) return ctx.status();
    return output;
  };
}

absl::Status Generate(Module& model, Kernels& kernels,
                      std::vector<std::int32_t> prompt,
                      const GenerateOptions& options,
                      const std::function<bool(std::int32_t)>& on_token) {
  return Generate(LogitsOf(model, kernels), kernels.allocator(),
                  std::move(prompt), options, on_token);
}

absl::Status Generate(const LogitsFn& logits, Allocator& memory,
                      std::vector<std::int32_t> prompt,
                      const GenerateOptions& options,
                      const std::function<bool(std::int32_t)>& on_token) {
  OneText listener(on_token);
  return GenerateTexts(logits, memory, {std::move(prompt)}, options, listener);
}

absl::Status GenerateTexts(const LogitsFn& logits, Allocator& memory,
                           absl::Span<const std::vector<std::int32_t>> prompts,
                           const GenerateOptions& options,
                           TextListener& listener) {
  TROUPE_RETURN_IF_ERROR(Check(prompts, options));
  TextBatch batch(logits, memory, options, listener);
  std::size_t next = 0;
  while (batch.goes_on()) {
    while (next < prompts.size() && batch.has_place() && batch.goes_on()) {
      TROUPE_RETURN_IF_ERROR(batch.Add(next, prompts[next]));
      ++next;
    }
    if (batch.empty() || !batch.goes_on()) break;
    TROUPE_RETURN_IF_ERROR(batch.Step());
  }
  return absl::OkStatus();
}

}  // namespace troupe::nn
