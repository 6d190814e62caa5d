// Chooses the random seeds that a test runs with.
//
//   for (std::uint64_t seed : Seeds(1000)) {
//     ASSERT_EQ(Difference(RunWith(seed), want), "") << ReplayCommand(seed);
//   }
//
// Environment variables change the choice. TROUPE_SIM_SEED, which the command
// printed by ReplayCommand() sets, is the only seed. TROUPE_SIM_ONE_IN=n, as in
// tools/test and under sanitizers (.bazelrc), keeps one seed in n.
// TROUPE_SIM_TIMES=n, for long runs, multiplies the number of seeds by n.

#ifndef TESTS_BASE_SEEDS_H_
#define TESTS_BASE_SEEDS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

// Returns the seeds below `count`, changed by all three variables.
std::vector<std::uint64_t> Seeds(std::uint64_t count);

// Returns all seeds below `count`, or the one to replay: for quick tests of
// rare outcomes that must occur with at least one seed.
std::vector<std::uint64_t> EverySeed(std::uint64_t count);

// Returns the numbers below `count`, for cases made in a loop. Keeps one in
// TROUPE_CASES_ONE_IN, which is set under sanitizers.
std::vector<std::uint64_t> Cases(std::uint64_t count);

// Returns the command that runs the current test with this seed only.
std::string ReplayCommand(std::uint64_t seed);

}  // namespace troupe

#endif  // TESTS_BASE_SEEDS_H_
