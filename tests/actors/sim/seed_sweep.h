// Simulates a job under many seeds, all of which must give the same run.
//
//   const SimulatedRun want = Simulate(spec, /*seed=*/0);
//   ASSERT_TRUE(want.result.ok()) << want.result.status();
//   ASSERT_EQ(DifferenceUnderSeeds(spec, /*count=*/1000, want), "");

#ifndef TESTS_ACTORS_SIM_SEED_SWEEP_H_
#define TESTS_ACTORS_SIM_SEED_SWEEP_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/actors/sim/simulated_run.h"
#include "tests/base/seeds.h"

namespace troupe::actors {

// Simulates `spec` under each of Seeds(count). Returns the Difference() of the
// first run that differs from `want`, with the command that replays it. Empty:
// none does.
inline std::string DifferenceUnderSeeds(const JobSpec& spec,
                                        std::uint64_t count,
                                        const SimulatedRun& want) {
  for (const std::uint64_t seed : Seeds(count)) {
    const std::string difference = Difference(Simulate(spec, seed), want);
    if (difference.empty()) continue;
    return absl::StrCat(difference, ReplayCommand(seed));
  }
  return "";
}

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIM_SEED_SWEEP_H_
