#include "data/text/bpe_tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/field_error.h"
#include "base/foreign_format.h"
#include "data/text/gpt2_split.h"
#include "data/text/utf8.h"
#include "data/text/vocabulary_file.h"

namespace troupe::data {
namespace {

constexpr char kVocabularyName[] = "vocab.json";
constexpr char kMergesName[] = "merges.txt";
constexpr int kByteValues = 256;
constexpr std::int32_t kInvisibleBase = 256;  // U+0100
// Limit on the pieces that one call of Encode() caches.
constexpr std::size_t kRememberedMax = 1 << 20;

bool IsVisible(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
         (byte >= 0xae && byte <= 0xff);
}

// Returns the byte that each code point of the files represents.
absl::flat_hash_map<std::int32_t, char> ByteOfCodePoint() {
  absl::flat_hash_map<std::int32_t, char> bytes;
  std::int32_t next = kInvisibleBase;
  for (int byte = 0; byte < kByteValues; ++byte) {
    bytes[IsVisible(byte) ? byte : next++] = static_cast<char>(byte);
  }
  return bytes;
}

// A merge of two adjacent tokens into one; lower ranks are applied first.
struct Merge {
  std::int32_t rank;
  Token whole;
};
using Pair = std::pair<Token, Token>;
using Merges = absl::flat_hash_map<Pair, Merge>;

// A piece during merging: a linked list of tokens, and a queue of possible
// merges.
class MergedPiece {
 public:
  MergedPiece(const Merges& merges, std::vector<Token> tokens)
      : merges_(merges), nodes_(tokens.size()) {
    const auto count = static_cast<std::int32_t>(tokens.size());
    for (std::int32_t i = 0; i < count; ++i) {
      nodes_[i] = {tokens[i], i - 1, i + 1 < count ? i + 1 : -1};
    }
    for (std::int32_t i = 0; i + 1 < count; ++i) Offer(i);
  }

  void AppendTo(std::vector<Token>& tokens) {
    while (!queue_.empty()) {
      const auto [rank, left, right, pair] = queue_.top();
      queue_.pop();
      // An earlier merge may have replaced one of both tokens.
      if (nodes_[left].next != right || nodes_[left].token != pair.first ||
          nodes_[right].token != pair.second) {
        continue;
      }
      Join(left, right, merges_.at(pair).whole);
    }
    for (std::int32_t i = 0; i >= 0; i = nodes_[i].next) {
      tokens.push_back(nodes_[i].token);
    }
  }

 private:
  struct Node {
    Token token;
    std::int32_t previous;
    std::int32_t next;  // -1 at the end, and kGone
  };
  static constexpr std::int32_t kGone = -2;
  // Rank, left and right node, their tokens.
  using Candidate = std::tuple<std::int32_t, std::int32_t, std::int32_t, Pair>;

  void Offer(std::int32_t left) {
    const std::int32_t right = nodes_[left].next;
    const Pair pair = {nodes_[left].token, nodes_[right].token};
    const auto found = merges_.find(pair);
    if (found != merges_.end()) {
      queue_.emplace(found->second.rank, left, right, pair);
    }
  }

  void Join(std::int32_t left, std::int32_t right, Token whole) {
    const std::int32_t next = nodes_[right].next;
    nodes_[left].token = whole;
    nodes_[left].next = next;
    nodes_[right].next = kGone;
    if (next >= 0) {
      nodes_[next].previous = left;
      Offer(left);
    }
    if (nodes_[left].previous >= 0) Offer(nodes_[left].previous);
  }

  const Merges& merges_;
  std::vector<Node> nodes_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

class BpeTokenizer : public Tokenizer {
 public:
  BpeTokenizer(std::vector<std::string> bytes,
               const std::array<Token, kByteValues>& of_byte, Merges merges)
      : bytes_(std::move(bytes)),
        of_byte_(of_byte),
        merges_(std::move(merges)) {}

  std::string name() const override { return "gpt2"; }
  std::int64_t vocab_size() const override {
    return static_cast<std::int64_t>(bytes_.size());
  }

  absl::StatusOr<std::vector<Token>> Encode(
      absl::string_view text) const override {
    std::vector<Token> tokens;
    // Range of a piece's tokens: [first, second) of `tokens`.
    absl::flat_hash_map<absl::string_view, std::pair<std::size_t, std::size_t>>
        seen;
    for (const absl::string_view piece : SplitForGpt2(text)) {
      const std::size_t begin = tokens.size();
      const auto found = seen.find(piece);
      if (found != seen.end()) {
        const auto [first, end] = found->second;
        for (std::size_t i = first; i < end; ++i) tokens.push_back(tokens[i]);
        continue;
      }
      EncodePiece(piece, tokens);
      if (seen.size() < kRememberedMax) seen[piece] = {begin, tokens.size()};
    }
    return tokens;
  }

  absl::StatusOr<std::string> Decode(
      absl::Span<const Token> tokens) const override {
    std::string text;
    for (const Token token : tokens) {
      TROUPE_RETURN_IF_ERROR(CheckToken(token));
      text += bytes_[token];
    }
    return text;
  }

 private:
  void EncodePiece(absl::string_view piece, std::vector<Token>& tokens) const {
    std::vector<Token> bytes;
    for (const char c : piece) {
      bytes.push_back(of_byte_[static_cast<std::uint8_t>(c)]);
    }
    MergedPiece(merges_, std::move(bytes)).AppendTo(tokens);
  }

  const std::vector<std::string> bytes_;  // indexed by token
  const std::array<Token, kByteValues> of_byte_;
  const Merges merges_;
};

absl::Status Damaged(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      name, ": ", what, "; give GPT-2's vocab.json and merges.txt"));
}

using Numbers = absl::flat_hash_map<std::string, Token>;

// Returns the bytes that tokens represent. A token with a character that
// represents no byte is special, and represents its own text.
std::vector<std::string> BytesOfTokens(const std::vector<std::string>& texts) {
  const auto byte_of = ByteOfCodePoint();
  std::vector<std::string> all;
  for (const std::string& text : texts) {
    std::string bytes;
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char c = Utf8At(text, at);
      const auto byte = byte_of.find(c.code_point);
      if (byte == byte_of.end()) {
        bytes = text;
        break;
      }
      bytes.push_back(byte->second);
      at += c.bytes;
    }
    all.push_back(std::move(bytes));
  }
  return all;
}

absl::StatusOr<Merges> ParseMerges(absl::string_view text,
                                   const Numbers& numbers) {
  Merges merges;
  std::int32_t number = 0;
  std::int32_t rank = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || (number == 1 && line[0] == '#')) continue;
    const std::vector<std::string> parts = absl::StrSplit(line, ' ');
    const auto wrong = [&](absl::string_view what) {
      return Damaged(absl::StrCat(kMergesName, ":", number), what);
    };
    if (parts.size() != 2) return wrong("the line is not two tokens");
    const auto left = numbers.find(parts[0]);
    const auto right = numbers.find(parts[1]);
    const auto whole = numbers.find(parts[0] + parts[1]);
    if (left == numbers.end() || right == numbers.end() ||
        whole == numbers.end()) {
      return wrong(
          "a part of the line, or both together, are no tokens of "
          "vocab.json");
    }
    // The first line counts if a pair is listed twice.
    merges.emplace(Pair(left->second, right->second),
                   Merge{rank++, whole->second});
  }
  return merges;
}

}  // namespace

absl::StatusOr<TokenizerPtr> ParseBpeTokenizer(absl::string_view vocabulary,
                                               absl::string_view merges) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                          ParseVocabulary(vocabulary, kVocabularyName));
  Numbers numbers;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    numbers[texts[i]] = static_cast<Token>(i);
  }
  std::vector<std::string> bytes = BytesOfTokens(texts);
  std::array<Token, kByteValues> of_byte;
  of_byte.fill(-1);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i].size() != 1) continue;
    of_byte[static_cast<std::uint8_t>(bytes[i][0])] = static_cast<Token>(i);
  }
  for (int byte = 0; byte < kByteValues; ++byte) {
    if (of_byte[byte] >= 0) continue;
    return Damaged(kVocabularyName,
                   absl::StrCat("no token stands for the byte ", byte));
  }
  TROUPE_RETURN_IF_ERROR(base::RefuseForeignFormat(
      merges, kMergesName, "not the merges of a tokenizer"));
  TROUPE_ASSIGN_OR_RETURN(Merges parsed, ParseMerges(merges, numbers));
  return TokenizerPtr(std::make_shared<BpeTokenizer>(std::move(bytes), of_byte,
                                                     std::move(parsed)));
}

absl::StatusOr<TokenizerPtr> ReadBpeTokenizer(base::FileSystem& files,
                                              const std::string& folder) {
  const std::string vocabulary_path = base::JoinPath(folder, kVocabularyName);
  TROUPE_ASSIGN_OR_RETURN(
      const std::string vocabulary,
      base::ReadWholeFile(files, vocabulary_path, kVocabularyBytesMax));
  TROUPE_ASSIGN_OR_RETURN(
      const std::string merges,
      base::ReadWholeFile(files, base::JoinPath(folder, kMergesName),
                          kMergesBytesMax));
  absl::StatusOr<TokenizerPtr> tokenizer =
      ParseBpeTokenizer(vocabulary, merges);
  if (tokenizer.ok()) return tokenizer;
  return base::WithMessage(
      tokenizer.status(), base::JoinPath(folder, tokenizer.status().message()));
}

}  // namespace troupe::data
