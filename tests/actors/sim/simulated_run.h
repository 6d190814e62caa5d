// One simulated run as tests look at it, and the seeds to try.
//
//   const SimulatedRun want = Simulate(spec, {});
//   for (std::uint64_t seed : Seeds(1000)) {
//     SimulationOptions options;
//     options.seed = seed;
//     const SimulatedRun run = Simulate(spec, options);
//     ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
//   }
//
// Seeds() is the one seed of TROUPE_SIM_SEED, where that is set: the command
// that ReplayCommand() prints sets it. Where TROUPE_SIM_ONE_IN is, as under
// sanitizers (.bazelrc), it is one in so many.

#ifndef TESTS_ACTORS_SIM_SIMULATED_RUN_H_
#define TESTS_ACTORS_SIM_SIMULATED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/sim/simulation.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {

struct SimulatedRun {
  absl::StatusOr<JobResult> result = absl::UnknownError("not run");
  absl::Status check;       // Simulation::Check()
  ParameterLog parameters;  // after each step
  Reports reports;
  std::uint64_t hash = 0;
  std::int64_t messages = 0;
};

SimulatedRun Simulate(const JobSpec& spec, const SimulationOptions& options);

// What is wrong with `run`, or is not, to the bit, as in `want`: parameters
// after each step, losses, evaluations. Empty: nothing.
std::string Difference(const SimulatedRun& run, const SimulatedRun& want);

// The seeds below `count`, a part of them, or the one to replay.
std::vector<std::uint64_t> Seeds(std::uint64_t count);

// How to run the current test with this seed alone.
std::string ReplayCommand(std::uint64_t seed);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIM_SIMULATED_RUN_H_
