// Names the functions of a race in a report of ThreadSanitizer.
//
//   NamedRace(report);   // "troupe::Send(), troupe::Receive()"; or ""
//
// Threads: any.

#ifndef TESTS_ACTORS_SIM_PLANTED_RACES_H_
#define TESTS_ACTORS_SIM_PLANTED_RACES_H_

#include <cstddef>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/fibers/sanitizers.h"

namespace troupe {

#if TROUPE_TSAN
inline constexpr bool kUnderTsan = true;
#else
inline constexpr bool kUnderTsan = false;
#endif

// Returns the innermost functions of Troupe at both places of the first race in
// `report`; empty: it has no race.
inline std::string NamedRace(absl::string_view report) {
  std::string named;
  int places = 0;
  bool looking = false;
  for (absl::string_view line : absl::StrSplit(report, '\n')) {
    if (absl::StrContains(line, " of size ")) {
      if (++places > 2) break;
      looking = true;
    }
    const std::size_t begin = line.find("troupe::");
    if (!looking || begin == absl::string_view::npos) continue;
    looking = false;
    const absl::string_view function =
        line.substr(begin, line.find('(', begin) - begin);
    absl::StrAppend(&named, named.empty() ? "" : ", ", function, "()");
  }
  return named;
}

}  // namespace troupe

#endif  // TESTS_ACTORS_SIM_PLANTED_RACES_H_
