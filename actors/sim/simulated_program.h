// Runs a program of many ranks (actors/program) in one thread, under the seeded
// scheduler with a virtual clock: the strands of production, with a seed that
// chooses every interleaving.
//
//   const SimulatedRun run = SimulateProgram(spec, {/*seed=*/42});
//   TROUPE_RETURN_IF_ERROR(run.status);
//   run.trace_hash;                  // equal for equal seed, program and build
//
// The seed chooses which rank goes on whenever one waits, sends a message, or
// has done a chunk of a collective. Time stands still as long as any rank can
// run, so a program that hangs meets its timeout at once.
//
// Threads: one. A program must not block it by other means than its groups.

#ifndef ACTORS_SIM_SIMULATED_PROGRAM_H_
#define ACTORS_SIM_SIMULATED_PROGRAM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "actors/program/program_spec.h"
#include "comm/local/local_group.h"

namespace troupe::actors {

struct ProgramSimulation {
  std::uint64_t seed = 0;
  // Limit on the time of a message, which the seed draws; zero: time stands
  // still.
  absl::Duration message_time_max = absl::ZeroDuration();
  // Limit on the messages of the program, beyond which it fails.
  std::int64_t messages_max = 10'000'000;
  // Makes the groups; null: those of the device (actors/setup/group_makers.h).
  comm::GroupFactory make_group = nullptr;
};

struct SimulatedRun {
  absl::Status status;           // the same as of RunProgram()
  std::uint64_t trace_hash = 0;  // over (rank, message), in their order
  std::int64_t messages = 0;
};

SimulatedRun SimulateProgram(const ProgramSpec& spec,
                             const ProgramSimulation& options);

}  // namespace troupe::actors

#endif  // ACTORS_SIM_SIMULATED_PROGRAM_H_
