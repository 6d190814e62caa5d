// Finds a planted bug: tries seeds until one shows it.
//
//   ExpectFound(Bug::kNeverIdle, "NeverIdle", "no progress for 1m",
//               [&](std::uint64_t seed) { return WhatIsWrong(seed); });
//   ExpectACaseForEach<Bug>(kCases);
//
// The hunt runs in a process of its own, since a bug may abort it.

#ifndef TESTS_ACTORS_SIM_PLANTED_HUNT_H_
#define TESTS_ACTORS_SIM_PLANTED_HUNT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/actors/sim/planted/in_child.h"
#include "tests/actors/sim/planted/planted_bug.h"

namespace troupe {

// Returns the fault of the run of a seed; empty: none.
using TrySeed = std::function<std::string(std::uint64_t seed)>;

constexpr std::uint64_t kSeedsOfHunt = 1000;

// Returns "seed 17: ..." with the fault, for the last seed that was tried.
inline std::string Hunt(const TrySeed& try_seed) {
  const std::string text = InChild([&] {
    for (std::uint64_t seed = 0; seed < kSeedsOfHunt; ++seed) {
      // The seed is written before the trial, which may end the process.
      std::fprintf(stderr, "\nseed %d: ", static_cast<int>(seed));
      const std::string wrong = try_seed(seed);
      if (wrong.empty()) continue;
      std::fprintf(stderr, "%s", wrong.c_str());
      return;
    }
  });
  return text.substr(text.rfind("\nseed ") + 1);
}

// Expects that the hunt finds `bug`, with `found` in the fault.
template <typename Bug>
void ExpectFound(Bug bug, const char* name, const char* found,
                 const TrySeed& try_seed) {
  const std::string last = Hunt([&](std::uint64_t seed) {
    PlantedBug<Bug>() = bug;
    return try_seed(seed);
  });
  EXPECT_TRUE(absl::StrContains(last, found)) << last;
  EXPECT_FALSE(absl::EndsWith(last, ": ")) << name << " is not found";
  std::printf("%s, %s\n", name, last.c_str());
}

// Expects that `cases` has one case for each bug, in order.
template <typename Bug, typename Cases>
void ExpectACaseForEach(const Cases& cases) {
  constexpr int kBugs = static_cast<int>(Bug::kEnd) - 1;
  ASSERT_EQ(std::size(cases), std::size_t{kBugs});
  for (int i = 0; i < kBugs; ++i) {
    EXPECT_EQ(static_cast<int>(cases[i].bug), i + 1);
  }
}

}  // namespace troupe

#endif  // TESTS_ACTORS_SIM_PLANTED_HUNT_H_
