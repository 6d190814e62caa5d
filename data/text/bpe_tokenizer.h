// GPT-2's tokenizer: byte pair encoding of bytes, from the user's vocab.json
// and merges.txt.
//
//   TROUPE_ASSIGN_OR_RETURN(TokenizerPtr gpt2,
//                           ReadBpeTokenizer(files, "models/gpt2"));
//   gpt2->vocab_size();                      // 50257
//   gpt2->Encode("Hello world");             // {15496, 995}
//
// A text is cut into pieces (gpt2_split.h). Each piece begins as its bytes; the
// adjacent pair that comes first in merges.txt is merged, until no pair is in
// the file. The files write a byte as a visible character: printable Latin-1 as
// itself, other bytes as U+0100 and on.
//
// Special tokens (<|endoftext|>) are decoded but never encoded: Encode() treats
// their text as text. It accepts any text. Cost: O(n log n) in the length of a
// piece; a piece that was seen before is looked up.
// Source: Sennrich et al. 2016, arXiv:1508.07909.

#ifndef DATA_TEXT_BPE_TOKENIZER_H_
#define DATA_TEXT_BPE_TOKENIZER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "data/text/tokenizer.h"

namespace troupe::data {

// Limit on merges.txt; GPT-2's has 0.5 MB and 50,000 lines.
inline constexpr std::int64_t kMergesBytesMax = 64 << 20;

// Makes a tokenizer from the texts of both files. Errors begin with the name of
// the file.
//   kDataLoss: ParseVocabulary(); a byte that no token stands for; a line of
//              the merges that is not two tokens, or whose parts or whole are
//              no tokens.
absl::StatusOr<TokenizerPtr> ParseBpeTokenizer(absl::string_view vocabulary,
                                               absl::string_view merges);

// Reads the files vocab.json and merges.txt of `folder`.
absl::StatusOr<TokenizerPtr> ReadBpeTokenizer(base::FileSystem& files,
                                              const std::string& folder);

}  // namespace troupe::data

#endif  // DATA_TEXT_BPE_TOKENIZER_H_
