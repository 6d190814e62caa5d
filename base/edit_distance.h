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

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::base {

// Returns the Levenshtein distance: the number of characters to insert, delete
// or replace.
inline int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// Returns up to `max` of `names`, the nearest first; of equal ones, the first.
inline std::vector<std::string> NearestNames(
    absl::string_view name, const std::vector<std::string>& names,
    std::size_t max) {
  std::vector<std::string> nearest = names;
  std::stable_sort(nearest.begin(), nearest.end(),
                   [name](const std::string& a, const std::string& b) {
                     return EditDistance(name, a) < EditDistance(name, b);
                   });
  if (nearest.size() > max) nearest.resize(max);
  return nearest;
}

}  // namespace troupe::base

#endif  // BASE_EDIT_DISTANCE_H_
