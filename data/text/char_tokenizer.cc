#include "data/text/char_tokenizer.h"

#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "base/check.h"
#include "data/text/utf8.h"
#include "data/text/vocabulary_file.h"

namespace troupe::data {
namespace {

constexpr std::size_t kCodePoints = 0x110000;  // number in Unicode

absl::Status NotUtf8(std::size_t at) {
  return absl::InvalidArgumentError(
      absl::StrCat("the text is not UTF-8 at byte ", at,
                   "; convert it, or use the tokenizer \"bytes\""));
}

class CharTokenizer : public Tokenizer {
 public:
  // `chars`: single characters, all different.
  explicit CharTokenizer(std::vector<std::string> chars)
      : chars_(std::move(chars)) {
    for (std::size_t i = 0; i < chars_.size(); ++i) {
      tokens_[Utf8At(chars_[i], 0).code_point] = static_cast<Token>(i);
    }
  }

  std::string name() const override { return "chars"; }
  std::int64_t vocab_size() const override {
    return static_cast<std::int64_t>(chars_.size());
  }

  absl::StatusOr<std::vector<Token>> Encode(
      absl::string_view text) const override {
    std::vector<Token> tokens;
    tokens.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char c = Utf8At(text, at);
      if (!c.valid()) return NotUtf8(at);
      const auto found = tokens_.find(c.code_point);
      if (found == tokens_.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "the character \"", absl::Utf8SafeCEscape(text.substr(at, c.bytes)),
            "\" at byte ", at, " is not one of the ", chars_.size(),
            " characters of the tokenizer's corpus; remove it, or use the "
            "tokenizer \"bytes\""));
      }
      tokens.push_back(found->second);
      at += c.bytes;
    }
    return tokens;
  }

  absl::StatusOr<std::string> Decode(
      absl::Span<const Token> tokens) const override {
    std::string text;
    for (const Token token : tokens) {
      TROUPE_RETURN_IF_ERROR(CheckToken(token));
      text += chars_[token];
    }
    return text;
  }

  const std::vector<std::string>& chars() const { return chars_; }

 private:
  const std::vector<std::string> chars_;
  absl::flat_hash_map<std::int32_t, Token> tokens_;  // keyed by code point
};

}  // namespace

absl::StatusOr<TokenizerPtr> MakeCharTokenizer(absl::string_view corpus) {
  // The order of UTF-8 strings is that of their code points.
  std::set<std::string> chars;
  std::vector<bool> seen(kCodePoints, false);
  for (std::size_t at = 0; at < corpus.size();) {
    const Utf8Char c = Utf8At(corpus, at);
    if (!c.valid()) return NotUtf8(at);
    if (!seen[c.code_point]) chars.emplace(corpus.substr(at, c.bytes));
    seen[c.code_point] = true;
    at += c.bytes;
  }
  if (chars.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tokenizer of characters needs at least one, not ",
                     corpus.size(), "; give a text that is not empty"));
  }
  return TokenizerPtr(std::make_shared<CharTokenizer>(
      std::vector<std::string>(chars.begin(), chars.end())));
}

absl::StatusOr<TokenizerPtr> ParseCharTokenizer(absl::string_view json,
                                                absl::string_view name) {
  TROUPE_ASSIGN_OR_RETURN(std::vector<std::string> chars,
                          ParseVocabulary(json, name));
  for (std::size_t i = 0; i < chars.size(); ++i) {
    const bool one = !chars[i].empty() && Utf8At(chars[i], 0).valid() &&
                     Utf8At(chars[i], 0).bytes == chars[i].size();
    if (!one) {
      return absl::DataLossError(
          absl::StrCat(name, ": token ", i,
                       " is not one character; give the file that a "
                       "tokenizer \"chars\" was saved in"));
    }
  }
  return TokenizerPtr(std::make_shared<CharTokenizer>(std::move(chars)));
}

absl::StatusOr<TokenizerPtr> ReadCharTokenizer(base::FileSystem& files,
                                               const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(
      const std::string json,
      base::ReadWholeFile(files, path, kVocabularyBytesMax));
  return ParseCharTokenizer(json, path);
}

absl::Status SaveCharTokenizer(base::FileSystem& files, const std::string& path,
                               const Tokenizer& tokenizer) {
  const auto* chars = dynamic_cast<const CharTokenizer*>(&tokenizer);
  if (chars == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot save the tokenizer \"", tokenizer.name(),
        "\" as one of characters; save only those of MakeCharTokenizer()"));
  }
  return base::WriteWholeFile(files, path, VocabularyToJson(chars->chars()));
}

}  // namespace troupe::data
