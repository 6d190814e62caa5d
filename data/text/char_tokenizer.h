// The tokenizer whose tokens are the characters of a corpus, as in nanoGPT's
// shakespeare_char.
//
//   TROUPE_ASSIGN_OR_RETURN(TokenizerPtr chars, MakeCharTokenizer("hello"));
//   chars->vocab_size();                     // 4
//   chars->Encode("hole");                   // {1, 3, 2, 0}
//
// A character is a code point of UTF-8; tokens are numbered in the order of the
// code points. SaveCharTokenizer() writes the characters as a vocabulary file
// (vocabulary_file.h), which keeps their order.

#ifndef DATA_TEXT_CHAR_TOKENIZER_H_
#define DATA_TEXT_CHAR_TOKENIZER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "data/text/tokenizer.h"

namespace troupe::data {

// kInvalidArgument: `corpus` is empty or, with the byte, not UTF-8.
absl::StatusOr<TokenizerPtr> MakeCharTokenizer(absl::string_view corpus);

// Makes a tokenizer from the text of a vocabulary file called `name`.
//   kDataLoss: ParseVocabulary(), or a text that is not one character.
absl::StatusOr<TokenizerPtr> ParseCharTokenizer(absl::string_view json,
                                                absl::string_view name);

absl::StatusOr<TokenizerPtr> ReadCharTokenizer(base::FileSystem& files,
                                               const std::string& path);

// kInvalidArgument: `tokenizer` is of another kind.
absl::Status SaveCharTokenizer(base::FileSystem& files, const std::string& path,
                               const Tokenizer& tokenizer);

}  // namespace troupe::data

#endif  // DATA_TEXT_CHAR_TOKENIZER_H_
