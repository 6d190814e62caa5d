#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "pipeline/schedules/step_simulation.h"

namespace troupe::pipeline {

std::string DrawStep(const SimulatedStep& step, int columns) {
  // If steps follow each other, any rank may be the first to begin this one.
  double start = step.seconds;
  for (const SimulatedRank& rank : step.ranks) {
    for (const SimulatedAction& at : rank.actions) {
      start = std::min(start, at.begin);
    }
  }
  const double length = step.seconds - start;
  const double per_column = length > 0 ? length / std::max(columns, 1) : 1;
  const auto column = [&](double time) {
    return std::min(columns,
                    static_cast<int>((time - start) / per_column + 0.5));
  };
  std::string text;
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    std::string line(columns, '.');
    for (const SimulatedAction& at : step.ranks[r].actions) {
      const int begin = column(at.begin), end = column(at.end);
      const std::string word = at.action.ToString();
      const char letter = word[word.find_first_not_of("0123456789")];
      std::fill(line.begin() + begin, line.begin() + end, letter);
      const std::string number = absl::StrCat(at.action.index);
      const int room = end - begin - 1;
      if (static_cast<int>(number.size()) > room) continue;
      std::copy(number.begin(), number.end(), line.begin() + begin + 1);
    }
    absl::StrAppend(&text, "rank ", r, ": ", line, "\n");
  }
  return text;
}

}  // namespace troupe::pipeline
