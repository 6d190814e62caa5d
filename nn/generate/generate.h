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
// `model` takes tokens i64 (1, T) and returns logits (1, T, vocabulary) of any
// floating dtype, of which row t depends on tokens 0..t alone:
// nn/models/gpt2.h, or a custom model. If a text is longer than the context,
// the model gets its last part. It runs on the host, in evaluation mode, over
// the whole text for each token: there is no key-value cache.
//
// If the model computes elsewhere, such as in stages of a pipeline
// (actors/inference/inference_session.h), a LogitsFn takes its place.

#ifndef NN_GENERATE_GENERATE_H_
#define NN_GENERATE_GENERATE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/generate/token_choice.h"
#include "nn/kernels/kernels.h"
#include "nn/modules/module.h"
#include "nn/tensor/allocator.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {

struct GenerateOptions {
  std::int64_t tokens = 100;   // limit on the tokens
  std::int64_t context = 256;  // limit of the model; at least 1
  SamplingOptions sampling;
};

// Returns the model's logits for tokens i64 (1, T): f32 (1, T, vocabulary), on
// the host.
using LogitsFn = std::function<absl::StatusOr<Tensor>(const Tensor& tokens)>;

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

}  // namespace troupe::nn

#endif  // NN_GENERATE_GENERATE_H_
