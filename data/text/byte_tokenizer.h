// The tokenizer without a vocabulary: a token is a byte.
//
//   const TokenizerPtr tokenizer = MakeByteTokenizer();
//   tokenizer->Encode("ab");                 // {97, 98}
//   tokenizer->vocab_size();                 // 256
//
// It encodes anything and needs no file. A text of N bytes has N tokens.

#ifndef DATA_TEXT_BYTE_TOKENIZER_H_
#define DATA_TEXT_BYTE_TOKENIZER_H_

#include "data/text/tokenizer.h"

namespace troupe::data {

inline constexpr std::int64_t kByteVocabSize = 256;

TokenizerPtr MakeByteTokenizer();

}  // namespace troupe::data

#endif  // DATA_TEXT_BYTE_TOKENIZER_H_
