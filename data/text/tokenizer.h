// Converts text to token numbers and back.
//
//   TokenizerPtr tokenizer = MakeByteTokenizer();        // byte_tokenizer.h
//   TROUPE_ASSIGN_OR_RETURN(std::vector<Token> tokens,
//                           tokenizer->Encode("To be"));
//   TROUPE_ASSIGN_OR_RETURN(std::string text, tokenizer->Decode(tokens));
//   tokenizer->vocab_size();                             // 256
//
// Tokens are numbers 0..vocab_size()-1. Decode(Encode(text)) is `text`, to the
// byte. Lifetime: tokenizers are immutable and shared. Threads: any number may
// use one at once.

#ifndef DATA_TEXT_TOKENIZER_H_
#define DATA_TEXT_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe::data {

using Token = std::int32_t;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // "bytes", "chars" or "gpt2".
  virtual std::string name() const = 0;
  virtual std::int64_t vocab_size() const = 0;

  // kInvalidArgument: no token represents a part of `text`; the message names
  // the byte.
  virtual absl::StatusOr<std::vector<Token>> Encode(
      absl::string_view text) const = 0;

  // Returns the bytes that the tokens represent. Those of a part of a sequence
  // need not be whole UTF-8 characters.
  //   kOutOfRange: a number is not a token.
  virtual absl::StatusOr<std::string> Decode(
      absl::Span<const Token> tokens) const = 0;

 protected:
  absl::Status CheckToken(Token token) const {
    if (0 <= token && token < vocab_size()) return absl::OkStatus();
    return absl::OutOfRangeError(absl::StrCat(
        "token ", token, " is not one of the ", vocab_size(),
        " tokens of the tokenizer \"", name(), "\"; use that of the training"));
  }
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

}  // namespace troupe::data

#endif  // DATA_TEXT_TOKENIZER_H_
