#include "data/text/gpt2_split.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "data/text/utf8.h"

namespace troupe::data {
namespace {

enum class CharClass { kLetter, kNumber, kSpace, kOther };

CharClass ClassOf(std::int32_t code_point) {
  if (IsLetter(code_point)) return CharClass::kLetter;
  if (IsNumber(code_point)) return CharClass::kNumber;
  if (IsSpace(code_point)) return CharClass::kSpace;
  return CharClass::kOther;
}

CharClass ClassAt(absl::string_view text, std::size_t at) {
  return ClassOf(Utf8At(text, at).code_point);
}

// Returns the length in bytes of the contraction at `at`; 0 if there is none.
std::size_t ContractionBytes(absl::string_view text, std::size_t at) {
  constexpr absl::string_view kContractions[] = {"'s", "'t",  "'re", "'ve",
                                                 "'m", "'ll", "'d"};
  for (const absl::string_view contraction : kContractions) {
    if (absl::StartsWith(text.substr(at), contraction)) {
      return contraction.size();
    }
  }
  return 0;
}

// Returns the end of the run of `wanted` characters that begins at `at`, and
// sets `last` to the position of its last character.
std::size_t EndOfRun(absl::string_view text, std::size_t at, CharClass wanted,
                     std::size_t& last) {
  while (at < text.size()) {
    const Utf8Char c = Utf8At(text, at);
    if (ClassOf(c.code_point) != wanted) break;
    last = at;
    at += c.bytes;
  }
  return at;
}

// Returns the end of the piece that begins at `at`.
std::size_t EndOfPiece(absl::string_view text, std::size_t at) {
  if (const std::size_t bytes = ContractionBytes(text, at)) return at + bytes;
  // A space belongs to the letters, numbers or signs behind it.
  const bool space = text[at] == ' ' && at + 1 < text.size();
  const std::size_t begin = space ? at + 1 : at;
  std::size_t last = begin;
  const CharClass first = ClassAt(text, begin);
  if (first != CharClass::kSpace) return EndOfRun(text, begin, first, last);
  // White space without its last character, if more text follows: this one
  // begins the next piece, alone or as the space before a word.
  const std::size_t end = EndOfRun(text, at, CharClass::kSpace, last);
  return end == text.size() || last == at ? end : last;
}

}  // namespace

std::vector<absl::string_view> SplitForGpt2(absl::string_view text) {
  std::vector<absl::string_view> pieces;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = EndOfPiece(text, at);
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
  return pieces;
}

}  // namespace troupe::data
