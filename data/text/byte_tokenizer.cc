#include "data/text/byte_tokenizer.h"

#include "base/check.h"

namespace troupe::data {
namespace {

class ByteTokenizer : public Tokenizer {
 public:
  std::string name() const override { return "bytes"; }
  std::int64_t vocab_size() const override { return kByteVocabSize; }

  absl::StatusOr<std::vector<Token>> Encode(
      absl::string_view text) const override {
    std::vector<Token> tokens;
    tokens.reserve(text.size());
    for (const char c : text) tokens.push_back(static_cast<std::uint8_t>(c));
    return tokens;
  }

  absl::StatusOr<std::string> Decode(
      absl::Span<const Token> tokens) const override {
    std::string text;
    text.reserve(tokens.size());
    for (const Token token : tokens) {
      TROUPE_RETURN_IF_ERROR(CheckToken(token));
      text.push_back(static_cast<char>(token));
    }
    return text;
  }
};

}  // namespace

TokenizerPtr MakeByteTokenizer() { return std::make_shared<ByteTokenizer>(); }

}  // namespace troupe::data
