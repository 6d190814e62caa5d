// Names that are like a name that does not exist, for errors that say what was
// meant.
//
//   EditDistance("fc.wieght", "fc.weight");                          // 2
//   NearestNames("fc.wieght", {"conv.bias", "fc.bias", "fc.weight"}, 1);
//   // {"fc.weight"}
//
// Cost: the product of both lengths, for each name.
// Source: Levenshtein 1966, Binary codes capable of correcting deletions,
// insertions and reversals.

#ifndef BASE_EDIT_DISTANCE_H_
#define BASE_EDIT_DISTANCE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::base {

// Returns the Levenshtein distance: the number of characters to insert, delete
// or replace.
int EditDistance(absl::string_view a, absl::string_view b);

// Returns up to `max` of `names`, the nearest first; of equal ones, the first.
std::vector<std::string> NearestNames(absl::string_view name,
                                      const std::vector<std::string>& names,
                                      std::size_t max);

}  // namespace troupe::base

#endif  // BASE_EDIT_DISTANCE_H_
