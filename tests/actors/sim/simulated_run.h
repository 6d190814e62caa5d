// One simulated run as tests look at it.
//
//   const SimulatedRun want = Simulate(spec, {});
//   for (std::uint64_t seed : Seeds(1000)) {
//     SimulationOptions options;
//     options.seed = seed;
//     const SimulatedRun run = Simulate(spec, options);
//     ASSERT_EQ(Difference(run, want), "") << ReplayCommand(seed);
//   }

#ifndef TESTS_ACTORS_SIM_SIMULATED_RUN_H_
#define TESTS_ACTORS_SIM_SIMULATED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "actors/sim/simulation.h"
#include "tests/actors/test_job.h"
#include "tests/base/seeds.h"

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

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIM_SIMULATED_RUN_H_
