// Cuts a text into the pieces inside which GPT-2's tokenizer merges: words with
// the space before them, numbers, punctuation, white space.
//
//   const auto pieces = SplitForGpt2("It's  here: 42");
//   // "It" "'s" " " " here" ":" " 42"
//
// The pattern, first alternative that matches first:
//
//     's|'t|'re|'ve|'m|'ll|'d
//     | ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// It is implemented as a scanner, since the standard library's regular
// expressions do not support Unicode. The pieces together are the text. Bytes
// that begin no UTF-8 character count as punctuation. O(n).
// Source: Radford et al. 2019, "Language models are unsupervised multitask
// learners", sec. 2.2; encoder.py of its code.

#ifndef DATA_TEXT_GPT2_SPLIT_H_
#define DATA_TEXT_GPT2_SPLIT_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::data {

// Returns views into `text`.
std::vector<absl::string_view> SplitForGpt2(absl::string_view text);

}  // namespace troupe::data

#endif  // DATA_TEXT_GPT2_SPLIT_H_
