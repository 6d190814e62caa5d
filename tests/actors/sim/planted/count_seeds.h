// Counts the seeds that show a planted bug, each in a process of its own, which
// the bug may end.
//
//   const Trial want = TryInChild([] { return Outcome(Bug::kNone, 0); });
//   const Tally tally = CountSeeds(Seeds(40), want, [](std::uint64_t seed) {
//     return Outcome(Bug::kNever, seed);
//   });
//   EXPECT_GT(tally.found(), 0) << tally.ToString();
//
// An outcome is a line of text: the result; or the error of a call, which
// begins with "error"; or the report of an emulation, which begins with
// "report".
//
// Threads: one; the children are copies of it.

#ifndef TESTS_ACTORS_SIM_PLANTED_COUNT_SEEDS_H_
#define TESTS_ACTORS_SIM_PLANTED_COUNT_SEEDS_H_

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/actors/sim/planted/in_child.h"

namespace troupe {

struct Trial {
  bool ended = false;   // whether the process came to its end
  std::string outcome;  // its last line; if it did not end, all that it wrote
};

inline Trial TryInChild(const std::function<std::string()>& outcome) {
  const std::string mark = "\noutcome: ";
  const std::string text = InChild([&] {
    const std::string line = outcome();
    std::fprintf(stderr, "%s%s", mark.c_str(), line.c_str());
  });
  const std::size_t at = text.rfind(mark);
  if (at == std::string::npos) return {false, text};
  return {true, text.substr(at + mark.size())};
}

// Number of seeds that showed the bug, by the way in which they did.
struct Tally {
  int tried = 0;
  int other_bits = 0;
  int errors = 0;   // errors of calls
  int reports = 0;  // reports of an emulation
  int ends = 0;     // early ends of the process
  std::string last;

  int found() const { return other_bits + errors + reports + ends; }
  // Returns "12 of 40: 9 other bits, 3 errors".
  std::string ToString() const {
    std::string text = absl::StrCat(found(), " of ", tried);
    const char* before = ": ";
    const auto add = [&](int count, const char* what) {
      if (count == 0) return;
      absl::StrAppend(&text, before, count, " ", what);
      before = ", ";
    };
    add(other_bits, "other bits");
    add(errors, "errors");
    add(reports, "reports");
    add(ends, "ends of the process");
    return text;
  }
};

inline Tally CountSeeds(
    const std::vector<std::uint64_t>& seeds, const Trial& want,
    const std::function<std::string(std::uint64_t seed)>& outcome) {
  Tally tally;
  for (const std::uint64_t seed : seeds) {
    const Trial trial = TryInChild([&] { return outcome(seed); });
    ++tally.tried;
    if (trial.ended && trial.outcome == want.outcome) continue;
    if (!trial.ended) {
      ++tally.ends;
    } else if (absl::StartsWith(trial.outcome, "error")) {
      ++tally.errors;
    } else if (absl::StartsWith(trial.outcome, "report")) {
      ++tally.reports;
    } else {
      ++tally.other_bits;
    }
    tally.last = absl::StrCat("seed ", seed, ": ", trial.outcome);
  }
  return tally;
}

}  // namespace troupe

#endif  // TESTS_ACTORS_SIM_PLANTED_COUNT_SEEDS_H_
