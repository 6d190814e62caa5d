// A dataset of windows of a sequence of tokens, for language models.
//
//   WindowOptions options;
//   options.context = 64;                    // T
//   options.order = WindowOrder::kRandom;
//   TROUPE_ASSIGN_OR_RETURN(
//       DatasetPtr train,
//       MakeTokenWindows(tokens, {0, tokens->size()}, options));
//   train->spec().ToString();     // "i64[64] -> i64[64] of 65 classes"
//
// A sample is T tokens x and, shifted by one, the T tokens that follow each of
// them: with the window at s, x[t] = tokens[s + t], y[t] = tokens[s + t + 1].
// Inputs are i64 [B, T], targets i64 [B, T].
//
// kSequential: window i begins at i * T, so windows do not overlap. With
// `pad_last` the last one may be shorter; the rest of it has input 0 and target
// `padding_target`, which the loss must ignore. Then the targets are all tokens
// of the range except the first, once each, as an evaluation needs. Without it,
// tokens that fill no window are left out.
//
// kRandom: there are as many samples as whole windows, but each begins anywhere
// in the range, at a position drawn from (seed, epoch, sample). So an epoch has
// about as many tokens as the range, and each epoch different windows.

#ifndef DATA_TEXT_TOKEN_WINDOWS_H_
#define DATA_TEXT_TOKEN_WINDOWS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "data/text/token_source.h"

namespace troupe::data {

// Default target of a position after the end of the tokens; the losses of
// nn/ops/loss.h ignore it by default (kIgnoreIndex, PyTorch's -100).
inline constexpr std::int64_t kPaddingTarget = -100;

// Limit on `context`.
inline constexpr std::int64_t kContextMax = 1 << 20;

enum class WindowOrder { kSequential, kRandom };

struct WindowOptions {
  std::int64_t context = 256;  // T, tokens of a window
  WindowOrder order = WindowOrder::kSequential;
  bool pad_last = false;  // kSequential
  // The `ignore_index` of the loss, so that padding never counts.
  std::int64_t padding_target = kPaddingTarget;
  std::uint64_t seed = 0;  // kRandom
};

// Returns the spec of the samples.
SampleSpec TokenWindowSpec(std::int64_t context, std::int64_t vocab_size);

// Returns a dataset of windows of tokens [range.begin, range.end).
//   kInvalidArgument: `context` is not in [1, kContextMax], the range is not
//                     inside the tokens, or too short: whole windows need
//                     context + 1 tokens, a padded one 2.
absl::StatusOr<DatasetPtr> MakeTokenWindows(TokenSourcePtr tokens,
                                            const Range& range,
                                            const WindowOptions& options);

}  // namespace troupe::data

#endif  // DATA_TEXT_TOKEN_WINDOWS_H_
