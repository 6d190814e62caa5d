// Generates text with a language model, token by token.
//
//   GenerateOptions options;
//   options.tokens = 200;
//   options.context = 256;                    // the model's
//   options.sampling.temperature = 0.8;
//   TROUPE_RETURN_IF_ERROR(
//       Generate(model, kernels, prompt, options, [&](std::int32_t token) {
//         std::cout << *tokenizer->Decode({token}) << std::flush;
//         return true;                        // false: stop
//       }));
//
// `model` takes tokens i64 (N, T) and returns logits (N, T, vocabulary) of any
// floating dtype, of which row t depends on tokens 0..t alone:
// nn/models/gpt2.h, or a custom model. It runs in evaluation mode, on the host.
//
// A key-value cache (nn/autograd/kv_cache.h) has what attention needs of the
// tokens so far, so that a token costs a forward of itself alone. The first
// token that comes from it is compared with a forward of the whole text; if the
// logits differ by more than rounding, as of a model that mixes positions
// outside of attention, generation goes on without the cache. Where a text is
// longer than the context, the model gets its last part, whose positions begin
// at 0 again, as in nanoGPT: from there on, each token is a forward of the
// whole context.
//
// GenerateTexts() has several prompts, up to options.batch at a time; when a
// text ends, the next prompt takes its place. A text has the tokens that it has
// alone: samples of a forward do not depend on each other, and nothing is
// padded. Text i draws with seed + i.
//
// If the model computes elsewhere, such as in stages of a pipeline
// (actors/inference/inference_session.h), a LogitsFn takes its place.

#ifndef NN_GENERATE_GENERATE_H_
#define NN_GENERATE_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/generate/token_choice.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"
#include "nn/tensor/text_places.h"

namespace troupe::nn {

struct GenerateOptions {
  std::int64_t tokens = 100;   // limit on the tokens of a text
  std::int64_t context = 256;  // limit of the model; at least 1
  std::int64_t batch = 1;      // limit on the texts at a time; at least 1
  bool cache = true;           // whether to use a key-value cache
  // A token that ends a text, and is not of it.
  std::optional<std::int32_t> end_token;
  SamplingOptions sampling;
};

// Returns the model's logits for tokens i64 (N, T): f32 (N, T, vocabulary), on
// the host. If `places` is not empty, the tokens go on with texts whose past
// tokens a key-value cache has from calls before; if `places.wanted` is not
// negative, (1, 1, vocabulary) of that position will do.
using LogitsFn = std::function<absl::StatusOr<Tensor>(
    const Tensor& tokens, const TextPlaces& places)>;

// Calls `on_token` with each token that follows `prompt`, until it returns
// false. `memory` is the host's.
//   kInvalidArgument: the prompt is empty, an option is out of range, the model
//     does not take tokens or returns another shape, a logit is not finite.
//   other: from `logits`, or the kernels.
absl::Status Generate(const LogitsFn& logits, Allocator& memory,
                      std::vector<std::int32_t> prompt,
                      const GenerateOptions& options,
                      const std::function<bool(std::int32_t)>& on_token);
absl::Status Generate(Module& model, Kernels& kernels,
                      std::vector<std::int32_t> prompt,
                      const GenerateOptions& options,
                      const std::function<bool(std::int32_t)>& on_token);

// Receives what is generated for text number `text`.
class TextListener {
 public:
  virtual ~TextListener() = default;
  // Returns false if the text is at its end.
  virtual bool OnToken(std::size_t text, std::int32_t token) = 0;
  // The text has ended. Returns false to end all texts.
  virtual bool OnEnd(std::size_t /*text*/) { return true; }
  // The text has ended by an error of its own. Returns what ends all texts: the
  // error, or OK if the others are to go on.
  virtual absl::Status OnError(std::size_t /*text*/,
                               const absl::Status& status) {
    return status;
  }
};

// Generates a text for each prompt. An error of a forward is that of its text.
// If several share the forward, each has one more of its own. The cache counts
// as lost then, and is filled anew for the others. Errors: those of OnError(),
// and of an option or an empty prompt.
absl::Status GenerateTexts(const LogitsFn& logits, Allocator& memory,
                           absl::Span<const std::vector<std::int32_t>> prompts,
                           const GenerateOptions& options,
                           TextListener& listener);

// Returns the logits of a model in this thread, with a cache of its own.
// `model` and `kernels` outlive it.
LogitsFn LogitsOf(Module& model, Kernels& kernels);

}  // namespace troupe::nn

#endif  // NN_GENERATE_GENERATE_H_
