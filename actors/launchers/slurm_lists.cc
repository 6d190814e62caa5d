#include "actors/launchers/slurm_lists.h"

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace troupe::actors {

absl::StatusOr<std::string> FirstHost(absl::string_view hosts) {
  std::string first;
  absl::string_view rest = hosts;
  while (!rest.empty() && rest.front() != ',') {
    if (rest.front() != '[') {
      first += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    // Takes the first number of "[01-04,9]", as it is written.
    const std::size_t end = rest.find_first_of(",-]", 1);
    const std::size_t close = rest.find(']');
    if (close == absl::string_view::npos || end <= 1) {
      first.clear();
      break;
    }
    absl::StrAppend(&first, rest.substr(1, end - 1));
    rest.remove_prefix(close + 1);
  }
  if (first.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", hosts,
                     "\" is no list of Slurm's hosts; "
                     "write it as n[01-04,9],m3"));
  }
  return first;
}

absl::StatusOr<int> TasksOnNode(absl::string_view counts, int node) {
  constexpr int kNodesMax = 1'000'000;
  int nodes = 0;
  for (absl::string_view entry : absl::StrSplit(counts, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits("(x", 1));
    int tasks = 0, times = 1;
    const bool repeats = parts.first.size() < entry.size();
    if (!absl::SimpleAtoi(parts.first, &tasks) || tasks < 1 ||
        (repeats &&
         !absl::SimpleAtoi(absl::StripSuffix(parts.second, ")"), &times))) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", counts,
                       "\" is no list of counts of Slurm's; "
                       "write it as 2(x3),1"));
    }
    if (times < 1 || times > kNodesMax - nodes) break;
    nodes += times;
    if (node < nodes) return tasks;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", counts, "\" has ", nodes,
      " nodes; the number of a node must be below that, not ", node));
}

}  // namespace troupe::actors
