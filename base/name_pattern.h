// Patterns of dotted names, such as those of parameters and modules.
//
//   MatchesPattern("*.bias", "features.0.bias");     // true
//   MatchesPattern("blocks.?", "blocks.12");         // false
//
// `*` is any run of characters, dots included, and `?` any one. No brackets, no
// escapes. Cost: pattern times name at worst, without recursion.

#ifndef BASE_NAME_PATTERN_H_
#define BASE_NAME_PATTERN_H_

#include "absl/strings/string_view.h"

namespace troupe::base {

// Whether `name` is what `pattern` describes, from its begin to its end.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

}  // namespace troupe::base

#endif  // BASE_NAME_PATTERN_H_
