// The seeds that a test tries.
//
//   for (std::uint64_t seed : Seeds(1000)) {
//     ASSERT_EQ(Difference(RunWith(seed), want), "") << ReplayCommand(seed);
//   }
//
// It is the one seed of TROUPE_SIM_SEED, where that is set: the command that
// ReplayCommand() prints sets it. Where TROUPE_SIM_ONE_IN is, as in tools/test
// and under sanitizers (.bazelrc), it is one in so many; where TROUPE_SIM_TIMES
// is, for a long run, it is so many times as many.

#ifndef TESTS_BASE_SEEDS_H_
#define TESTS_BASE_SEEDS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

// The seeds below `count`, a part of them, more, or the one to replay.
std::vector<std::uint64_t> Seeds(std::uint64_t count);

// All of them, or the one to replay: for quick tests of what must happen with
// some seed, be it rare.
std::vector<std::uint64_t> EverySeed(std::uint64_t count);

// The numbers below `count` of cases that are made in a loop; under sanitizers
// one in TROUPE_CASES_ONE_IN.
std::vector<std::uint64_t> Cases(std::uint64_t count);

// How to run the current test with this seed alone.
std::string ReplayCommand(std::uint64_t seed);

}  // namespace troupe

#endif  // TESTS_BASE_SEEDS_H_
