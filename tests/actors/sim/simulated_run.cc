#include "tests/actors/sim/simulated_run.h"

#include "absl/strings/str_format.h"

namespace troupe::actors {
namespace {

// Returns the first difference of losses or evaluations; empty: there is none.
std::string ReportDifference(const Reports& run, const Reports& want) {
  // A run that was resumed, or stopped, has some of the steps.
  for (const StepReport& step : run.steps) {
    for (const StepReport& other : want.steps) {
      if (step.step != other.step || step.loss == other.loss) continue;
      return absl::StrFormat("the loss of step %d is %.17g, not %.17g",
                             step.step, step.loss, other.loss);
    }
  }
  for (const EvaluationReport& evaluation : run.evaluations) {
    for (const EvaluationReport& other : want.evaluations) {
      if (evaluation.step != other.step || evaluation.loss == other.loss) {
        continue;
      }
      return absl::StrFormat("the evaluation after step %d is %.17g, not %.17g",
                             evaluation.step, evaluation.loss, other.loss);
    }
  }
  return "";
}

}  // namespace

SimulatedRun Simulate(const JobSpec& spec, const SimulationOptions& options) {
  SimulatedRun run;
  Simulation simulation(spec, options);
  run.result = simulation.Run(&run.reports);
  run.check = simulation.Check();
  run.parameters = simulation.parameters();
  run.hash = simulation.trace_hash();
  run.messages = simulation.messages();
  return run;
}

SimulatedRun Simulate(const JobSpec& spec, std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  return Simulate(spec, options);
}

ResumedRun StopAndResume(JobSpec spec, const std::string& name,
                         std::uint64_t seed) {
  spec.checkpoint.dir = FreshFolder(name);
  spec.checkpoint.resume = true;
  SimulationOptions options;
  options.seed = seed;
  options.stop_after_messages = 20 + 13 * static_cast<std::int64_t>(seed);
  ResumedRun run;
  run.dir = spec.checkpoint.dir;
  run.first = Simulate(spec, options);
  options.stop_after_messages = -1;
  if (run.first.result.ok()) run.second = Simulate(spec, options);
  return run;
}

std::string Difference(const SimulatedRun& run, const SimulatedRun& want) {
  if (!run.check.ok()) return run.check.ToString();
  const absl::Status same = Compare(run.parameters, want.parameters);
  if (!same.ok()) return same.ToString();
  const std::string reports = ReportDifference(run.reports, want.reports);
  if (!reports.empty()) return reports;
  // A run that was refused has no results to compare.
  if (want.result.ok() && !run.result.ok()) {
    return run.result.status().ToString();
  }
  return "";
}

}  // namespace troupe::actors
