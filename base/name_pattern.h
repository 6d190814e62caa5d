// Matches patterns of dotted names, such as those of parameters and modules.
//
//   MatchesPattern("*.bias", "features.0.bias");     // true
//   MatchesPattern("blocks.?", "blocks.12");         // false
//
// `*` matches any run of characters, dots included, and `?` any single one. No
// brackets, no escapes. Cost: at most the product of the two lengths, without
// recursion.

#ifndef BASE_NAME_PATTERN_H_
#define BASE_NAME_PATTERN_H_

#include "absl/strings/string_view.h"

namespace troupe::base {

// Returns whether `pattern` matches all of `name`.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

}  // namespace troupe::base

#endif  // BASE_NAME_PATTERN_H_
