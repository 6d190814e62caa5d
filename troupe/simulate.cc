#include "troupe/simulate.h"

namespace troupe {

SimulatedRun Simulate(const Program& program, const SpawnOptions& options,
                      const ProgramSimulation& simulation) {
  const absl::StatusOr<actors::ProgramSpec> spec =
      ProgramSpecOf(program, options);
  if (spec.ok()) return actors::SimulateProgram(*spec, simulation);
  SimulatedRun run;
  run.status = spec.status();
  return run;
}

}  // namespace troupe
