#include "base/edit_distance.h"

#include <algorithm>

namespace troupe::base {

int EditDistance(absl::string_view a, absl::string_view b) {
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

std::vector<std::string> NearestNames(absl::string_view name,
                                      const std::vector<std::string>& names,
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
