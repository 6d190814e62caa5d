#include "base/name_pattern.h"

#include <cstddef>

namespace troupe::base {

bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  // Position to continue from on a mismatch: the last star then takes one more
  // character.
  std::size_t star = absl::string_view::npos, taken = 0;
  std::size_t p = 0, n = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() &&
               (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace troupe::base
