// Chooses the next token of a text from the logits of a language model.
//
//   SamplingOptions options;
//   options.temperature = 0.8;
//   options.top_k = 40;
//   TokenChoice choice(options);
//   TROUPE_ASSIGN_OR_RETURN(std::int32_t token, choice.Next(logits, text));
//
// The probability of token i is softmax(logits / temperature)[i] among the
// candidates: first the top_k likeliest, then of these the fewest whose
// probabilities add up to top_p (nucleus sampling: Holtzman et al. 2020,
// arXiv:1904.09751, sec. 3.1), of which those stay that are at least min_p
// times as likely as the likeliest (Nguyen et al. 2024, arXiv:2407.01082, alg.
// 1). Of equal logits the lower number counts as likelier. Temperature 0 takes
// the likeliest and draws nothing.
//
// Before that, repetition_penalty makes the tokens of the text so far less
// likely: it divides their logits, or multiplies those below 0 (Keskar et al.
// 2019, arXiv:1909.05858, sec. 4.1). Names, order and defaults are those of
// Hugging Face's generate().
//
// Draws are keyed by the seed and the number of tokens chosen before, so the
// same logits give the same text on every machine. Threads: one at a time.

#ifndef NN_GENERATE_TOKEN_CHOICE_H_
#define NN_GENERATE_TOKEN_CHOICE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace troupe::nn {

struct SamplingOptions {
  double temperature = 1;         // 0, or more
  std::int64_t top_k = 0;         // 0: all tokens
  double top_p = 1;               // in (0, 1]
  double min_p = 0;               // in [0, 1]
  double repetition_penalty = 1;  // above 0; 1: none
  std::uint64_t seed = 0;

  // Errors name the field (base/field_error.h).
  absl::Status Validate() const;
};

class TokenChoice {
 public:
  // `options` must be valid.
  explicit TokenChoice(const SamplingOptions& options) : options_(options) {}

  // Returns the next token, a number below logits.size(), which is not 0.
  // `text`: all tokens so far, which repetition_penalty makes less likely.
  //   kInvalidArgument: a logit is not a number, or infinite.
  absl::StatusOr<std::int32_t> Next(absl::Span<const float> logits,
                                    absl::Span<const std::int32_t> text = {});

 private:
  // Returns the logits after the penalty for the tokens of `text`.
  absl::Span<const float> Penalized(absl::Span<const float> logits,
                                    absl::Span<const std::int32_t> text);
  // Fills `order_` with the candidate tokens, the likeliest first.
  void Order(absl::Span<const float> logits);
  std::int32_t Draw(absl::Span<const float> logits);

  const SamplingOptions options_;
  std::uint32_t chosen_ = 0;
  std::vector<std::int32_t> order_;
  std::vector<double> weights_;  // for `order_`; not normalised
  std::vector<float> penalized_;
};

}  // namespace troupe::nn

#endif  // NN_GENERATE_TOKEN_CHOICE_H_
