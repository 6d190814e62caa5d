// A simulated run with everything that tests check.
//
//   const SimulatedRun want = Simulate(spec, /*seed=*/0);
//   ASSERT_TRUE(want.result.ok()) << want.result.status();
//   for (std::uint64_t seed : Seeds(1000)) {
//     ASSERT_EQ(Difference(Simulate(spec, seed), want), "")
//         << ReplayCommand(seed);
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
// Simulates without faults and delays: the seed chooses the order alone.
SimulatedRun Simulate(const JobSpec& spec, std::uint64_t seed);

// A run that was stopped, and the run that went on from its checkpoint.
struct ResumedRun {
  std::string dir;  // folder of its checkpoints
  SimulatedRun first, second;

  // Returns the first error of the two.
  absl::Status status() const {
    return first.result.ok() ? second.result.status() : first.result.status();
  }
};

// Simulates a run with checkpoints in a new folder `name`, stops it after a
// number of messages that grows with the seed, and resumes it under that seed.
// The seeds 0 to 59 stop a small job at every part of it.
ResumedRun StopAndResume(JobSpec spec, const std::string& name,
                         std::uint64_t seed);

// Returns the error of `run`, or its first difference from `want`, to the bit:
// parameters after each step, losses, evaluations. A run that has failed
// differs from one that has not. Empty: there is none.
std::string Difference(const SimulatedRun& run, const SimulatedRun& want);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_SIM_SIMULATED_RUN_H_
