#include "data/text/utf8.h"

#include <utf8proc.h>

#include <algorithm>

namespace troupe::data {
namespace {

utf8proc_category_t CategoryOf(std::int32_t code_point) {
  return code_point < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(code_point);
}

}  // namespace

Utf8Char Utf8At(absl::string_view text, std::size_t at) {
  // utf8proc reads no further than the given length.
  constexpr std::size_t kCharBytesMax = 4;
  const std::size_t rest = std::min(text.size() - at, kCharBytesMax);
  Utf8Char c;
  utf8proc_int32_t code_point = -1;
  const utf8proc_ssize_t bytes = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
      static_cast<utf8proc_ssize_t>(rest), &code_point);
  if (bytes <= 0) return c;
  c.code_point = code_point;
  c.bytes = static_cast<std::size_t>(bytes);
  return c;
}

bool IsLetter(std::int32_t code_point) {
  switch (CategoryOf(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool IsNumber(std::int32_t code_point) {
  switch (CategoryOf(code_point)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

bool IsSpace(std::int32_t code_point) {
  // White_Space of Unicode: the separators, and six control characters.
  if (code_point >= 0x09 && code_point <= 0x0d) return true;
  if (code_point == 0x85) return true;
  switch (CategoryOf(code_point)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

}  // namespace troupe::data
