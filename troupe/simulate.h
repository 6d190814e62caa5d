// Runs a program in one thread under the seeded scheduler: a seed chooses how
// its ranks interleave, and time is virtual.
//
//   SpawnOptions options;
//   options.ranks = 4;
//   for (std::uint64_t seed = 0; seed < 100; ++seed) {
//     EXPECT_TRUE(Simulate(Run, options, {seed}).status.ok()) << seed;
//   }
//
// docs/simulation.md says what a seed chooses, and how to replay one.

#ifndef TROUPE_SIMULATE_H_
#define TROUPE_SIMULATE_H_

#include "actors/sim/simulated_program.h"
#include "troupe/program.h"

namespace troupe {

using actors::ProgramSimulation;
using actors::SimulatedRun;

SimulatedRun Simulate(const Program& program, const SpawnOptions& options,
                      const ProgramSimulation& simulation = {});

}  // namespace troupe

#endif  // TROUPE_SIMULATE_H_
