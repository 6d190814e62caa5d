// Characters of a UTF-8 text, one after another.
//
//   for (std::size_t at = 0; at < text.size();) {
//     const Utf8Char c = Utf8At(text, at);
//     if (!c.valid()) break;                 // text[at] begins no character
//     at += c.bytes;
//   }
//
// The decoding and the classes are those of utf8proc (Unicode 14): a library of
// 300 KB without data files, where ICU brings 30 MB.

#ifndef DATA_TEXT_UTF8_H_
#define DATA_TEXT_UTF8_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace troupe::data {

struct Utf8Char {
  std::int32_t code_point = -1;
  std::size_t bytes = 1;  // 1 if the byte begins no character

  bool valid() const { return code_point >= 0; }
};

// Returns the character at byte `at` < text.size(). Overlong forms, surrogates
// and numbers above U+10FFFF are not valid.
Utf8Char Utf8At(absl::string_view text, std::size_t at);

// Return whether a character is in \p{L}, \p{N} and \s of GPT-2's pattern. All
// return false for -1, a byte that begins no character.
bool IsLetter(std::int32_t code_point);
bool IsNumber(std::int32_t code_point);
bool IsSpace(std::int32_t code_point);

}  // namespace troupe::data

#endif  // DATA_TEXT_UTF8_H_
